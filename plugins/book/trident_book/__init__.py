"""Order books: EVENTs in, full L3 books out. Engines are listed in `plugin`."""
