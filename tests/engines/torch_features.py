"""X as the torch engine holds it, on torch's CPU device."""


def torch_features(X):
    """Return X on the CPU device; a CSR matrix stays one, however few its columns."""
    from maxmargin.engines.torch.device_rows import DeviceRows
    from maxmargin.engines.torch.features import TorchFeatures
    from maxmargin.engines.torch.row_products import products_of

    rows = DeviceRows.upload(X, "cpu")
    return TorchFeatures(products_of(rows.tensor), rows.device, not rows.sparse)
