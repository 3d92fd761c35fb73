"""The control plane's OpenAPI document, compared with its functions in process."""
