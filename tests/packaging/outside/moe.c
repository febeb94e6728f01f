/* A program of somebody else that uses experts: needs no job. */
#include <weft/moe.h>

#include <stdio.h>

int main(void) {
  weft_moe_config config = {0};
  size_t bytes = 0;
  config.max_tokens = 8;
  config.hidden = 64;
  config.experts = 4;
  config.topk = 2;
  config.payload = WEFT_MOE_BF16;
  config.output = WEFT_MOE_BF16;
  config.layout = WEFT_MOE_EXPERT_PADDED;
  config.alignment = 1;
  if (weft_moe_memory_bytes(&config, 2, 0, &bytes) != WEFT_OK || bytes == 0) {
    printf("%s\n", weft_last_error());
    return 1;
  }
  printf("%d\n", weft_moe_memory_bytes(NULL, 2, 0, &bytes));
  printf("%s\n", weft_last_error());
  return 0;
}
