/* PE 0 sends a message with a signal; PE 1 waits for the signal and reads. One trip, no barrier.
 *
 *   $ weft-run -n 2 02_put_signal
 *   PE 1 got "the weft crosses the warp" with signal 1
 */
#include <weft/weft.h>

#include <stdio.h>

int main(void) {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  char* text = weft_calloc(64, 1);
  uint64_t* arrived = weft_calloc(1, sizeof *arrived);
  if (weft_pe() == 0 && weft_pe_count() > 1) {
    const char message[] = "the weft crosses the warp";
    const weft_signal signal = {arrived, 1, WEFT_SIGNAL_SET};
    weft_put_signal(text, message, sizeof message, signal, 1);
  }
  if (weft_pe() == 1) {
    uint64_t seen = 0;
    weft_signal_wait_until(arrived, WEFT_NE, 0, &seen);
    printf("PE 1 got \"%s\" with signal %d\n", text, (int)seen);
  }
  weft_free(arrived); /* starts with a barrier: nobody frees what is in use */
  weft_free(text);
  return weft_finalize();
}
