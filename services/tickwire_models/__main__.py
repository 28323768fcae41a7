"""`python -m tickwire_models train ...`, the same as `tickwire model train ...`."""

from tickwire_models.cli import model_group

if __name__ == "__main__":
    model_group()
