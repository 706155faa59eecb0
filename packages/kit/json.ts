// Describes free JSON values and pages of long lists.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Free data of an account, kept by the provider. The LDAP directory publishes it: never put a
 * secret here.
 */
export type Attributes = Record<string, Json>;

export interface Page<T> {
  results: T[];
  /** Of the filtered set. */
  count: number;
}

export interface Paging {
  /** From 1. A page beyond the last is empty. */
  page: number;
  /** 1 to 200. */
  pageSize: number;
}

/**
 * Of JSON that was stored as text, by us or by somebody who changed it: the object that stands in
 * the text; a text that is none is given as it is, under `text`.
 */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : { text };
  } catch {
    return { text };
  }
}
