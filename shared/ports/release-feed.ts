// Where newer releases of the parts are announced.

export interface ReleaseFeed {
  /**
   * The newest release of a product within a cycle (`postgresql`, `16`); undefined when the feed does not know it.
   * Throws an AppError: `unavailable` without network, `upstream` when the feed answers wrongly.
   */
  newest(product: string, cycle: string): Promise<string | undefined>;
}
