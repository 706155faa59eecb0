// TakMessage, version 1: numbers of its fields, and which elements of `<detail>` have a message of their own.

export const TAK_MESSAGE = { takControl: 1, cotEvent: 2 } as const;

export const COT_EVENT = {
  type: 1,
  access: 2,
  qos: 3,
  opex: 4,
  uid: 5,
  sendTime: 6,
  startTime: 7,
  staleTime: 8,
  how: 9,
  lat: 10,
  lon: 11,
  hae: 12,
  ce: 13,
  le: 14,
  detail: 15,
  caveat: 16,
  releaseableTo: 17,
} as const;

/** Field of a detail that holds XML. */
export const XML_DETAIL = 1;

export interface TypedElement {
  /** Its field in the detail. */
  field: number;
  element: string;
  /** Their fields are 1, 2, … */
  attributes: readonly string[];
  kind: 'string' | 'uint32' | 'double';
}

export const TYPED_ELEMENTS: readonly TypedElement[] = [
  { field: 2, element: 'contact', attributes: ['endpoint', 'callsign'], kind: 'string' },
  { field: 3, element: '__group', attributes: ['name', 'role'], kind: 'string' },
  { field: 4, element: 'precisionlocation', attributes: ['geopointsrc', 'altsrc'], kind: 'string' },
  { field: 5, element: 'status', attributes: ['battery'], kind: 'uint32' },
  { field: 6, element: 'takv', attributes: ['device', 'platform', 'os', 'version'], kind: 'string' },
  { field: 7, element: 'track', attributes: ['speed', 'course'], kind: 'double' },
];

/** Before each message on the stream, followed by its length. */
export const MAGIC = 0xbf;
