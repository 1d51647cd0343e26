"""Fetch and verify Fashion-MNIST ahead of a class: python -m course_utils.fashion_mnist."""

import sys

from . import DatasetUnavailable, load


def main() -> int:
    """Print what there is and where; 1, with the whole error, when only the sample is there."""
    try:
        data = load(allow_sample=False, verify=True)
    except (DatasetUnavailable, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    arrays = (data.train_images, data.train_labels, data.test_images, data.test_labels)
    print("Fashion-MNIST is here, whole and verified.")
    print(f"  source: {data.source}")
    print(f"  images: {len(data.train_images):,} training + {len(data.test_images):,} test")
    print(f"  bytes:  {sum(array.nbytes for array in arrays):,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
