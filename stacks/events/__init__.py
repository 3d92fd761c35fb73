"""The event plane: a second stack beside the control plane, which can be removed without touching provisioning."""
