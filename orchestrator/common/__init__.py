"""What every capability needs: tenant ids, names, errors, and the checking of what comes in."""
