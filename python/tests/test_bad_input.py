"""Every wrong call of data/bad_input.md ends as the page says."""

import unittest

from programs import optional, torch
from test_sim import tool

bad_input = optional("bad_input") if torch is not None else None


@unittest.skipIf(bad_input is None or torch.cuda.is_available() or not tool(),
                 "torch or fp4-sim is not installed, or there is a GPU with its driver")
class BadInput(unittest.TestCase):
    def test_the_page_is_what_happens(self) -> None:
        page = bad_input.PAGE.read_text()
        for line in bad_input.tables().splitlines():
            with self.subTest(line):
                self.assertIn(line, page)

    def test_every_case_is_refused(self) -> None:
        page = bad_input.PAGE.read_text()
        rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
        self.assertGreater(len(rows), 50)
        for row in rows:
            self.assertNotIn(row[2], ("nothing", "AttributeError", "SystemError"), row)
            self.assertNotIn(row[4], ("", " |", "|"), f"{row} has no remedy")

    def test_the_judge(self) -> None:
        self.assertEqual(bad_input.outcome(lambda: None), ("nothing", "", ""))

        def fail() -> None:
            raise ValueError("/a/b/c.py is wrong | so\nnote: mend /a/it")

        self.assertEqual(bad_input.outcome(fail),
                         ("ValueError", ".../c.py is wrong \\| so", "mend .../it"))


if __name__ == "__main__":
    unittest.main()
