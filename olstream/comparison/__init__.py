"""Several learners side by side over one stream, each predicting every row before it learns it: `olstream compare`."""
