"""``python -m nhsvm``."""

from nhsvm.cli import main

if __name__ == "__main__":
    main()
