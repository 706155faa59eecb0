// Serial numbers in the one spelling in which they are compared.

/** Lower-case hex without separators and leading zeros; undefined for what is no number. */
export function serialIn(text: string | null | undefined): string | undefined {
  const hex = text?.toLowerCase().replaceAll(/^0x|[:\s-]/g, '') ?? '';
  return /^[0-9a-f]+$/.test(hex) ? hex.replace(/^0+(?=.)/, '') : undefined;
}
