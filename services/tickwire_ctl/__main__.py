"""`python -m tickwire_ctl ...`, the same as `tickwire ...`."""

from tickwire_ctl.cli import main

if __name__ == "__main__":
    main()
