// Query parameters: text that must be exactly what the document says.

import { z } from '@hono/zod-openapi';

/** A whole number in plain decimal digits within bounds; `initial` when it is absent. */
export function integerQuery(least: number, most: number, initial: number) {
  return z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`)
    .default(initial)
    .openapi({ type: 'integer', minimum: least, maximum: most, default: initial });
}
