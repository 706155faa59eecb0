// Defines a directory entry: a name and attributes.

export interface Attribute {
  name: string;
  values: readonly string[];
  /** For values that are names: what they are compared by. */
  keys?: () => readonly string[];
}

export interface Entry {
  dn: string;
  /** By name in lower case. */
  attributes: ReadonlyMap<string, Attribute>;
  /** Shows everything to a client that asks for operational attributes. */
  operational?: true;
}

export const SUBSCHEMA_NAME = 'cn=subschema';

export function entry(dn: string, attributes: readonly Attribute[]): Entry {
  const shown = attributes.filter(({ values }) => values.length > 0);
  return { dn, attributes: new Map(shown.map((attribute) => [attribute.name.toLowerCase(), attribute])) };
}

export function text(name: string, ...values: string[]): Attribute {
  return { name, values: values.filter((value) => value !== '') };
}
