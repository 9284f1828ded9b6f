"""Comparisons with numpy, and operands, of cases whose arrays are those of device.py."""
import numpy

def equal(found, wanted, what="result"):
    """Bit for bit, except that any NaN equals any other."""
    found, wanted = numpy.asarray(found), numpy.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, \
        f"{what}: {found.dtype}{found.shape} where {wanted.dtype}{wanted.shape} was expected"
    bits = numpy.dtype(f"u{found.dtype.itemsize}")
    different = found.view(bits) != wanted.view(bits)
    if found.dtype.kind not in "iub":
        different &= ~(numpy.isnan(found) & numpy.isnan(wanted))
    if different.any():
        at = tuple(numpy.argwhere(different)[0])
        raise AssertionError(f"{what}: {different.sum()} of {different.size} differ; at {at} {found[at]} "
                             f"where {wanted[at]} was expected")


def close(found, wanted, relative, absolute=0.0, what="result"):
    found, wanted = numpy.asarray(found, numpy.float64), numpy.asarray(wanted, numpy.float64)
    wrong = ~(numpy.abs(found - wanted) <= absolute + relative * numpy.abs(wanted))
    if wrong.any():
        at = tuple(numpy.argwhere(wrong)[0])
        raise AssertionError(f"{what}: {wrong.sum()} of {wrong.size} differ; at {at} {found[at]} where "
                             f"{wanted[at]} was expected")


def numbers(shape, seed=1, dtype=numpy.float32):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(shape, low, high, seed=1, dtype=numpy.int32):
    return numpy.random.default_rng(seed).integers(low, high, shape).astype(dtype)
