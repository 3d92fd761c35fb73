"""The life of one tenant: what is recorded, what platforms and operators ask for, what the machines do then."""
