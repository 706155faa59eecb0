// What a person sees of the start and of the life of the stack.

export interface Report {
  /** A step begins; the function that comes back ends it with what it found. */
  step(name: string): (detail: string) => void;
  warn(text: string): void;
  event(name: string, fields: Record<string, unknown>): void;
}
