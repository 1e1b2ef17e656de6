"""Uses far more memory than the job asked for, then waits to be ended."""
import time

hoard = bytearray(600 * 2**20)
print(f"holding {len(hoard)} bytes", flush=True)
time.sleep(60)
