"""Parts that the checks share: their command line, and the end of each."""
import argparse
import pathlib


def parser_of(doc):
    """A command line whose --root is the tree that is checked: this one, where it is left out."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, help="the tree that is checked",
                        default=pathlib.Path(__file__).resolve().parent.parent)
    return parser


def finish(findings, summary=None):
    """Prints each finding, or the summary if there is none. Returns the exit code of the check."""
    findings = list(findings)
    for line in findings or ([summary] if summary else []):
        print(line)
    return 1 if findings else 0
