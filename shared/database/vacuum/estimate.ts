// Estimates the space that VACUUM FULL would free, from the catalog and statistics: the current
// files minus the pages that the live rows need when rewritten, by the layout of PostgreSQL 13 to
// 17. Null if nothing is known about the rows.

export interface Column {
  attnum: number;
  dropped: boolean;
  /** Bytes of a fixed-size type, else negative. */
  length: number;
  /** Alignment of the type in bytes. */
  align: number;
  /** From the statistics; null if there are none. */
  avg_width: number | null;
  null_frac: number | null;
  /** As in pg_stats: negative values are a share of the rows. */
  n_distinct: number | null;
}

export interface Counted {
  /** Size of its main fork. */
  bytes: number;
  /** Per cent. */
  fillfactor: number | null;
  pages: number;
  reltuples: number;
  live: number;
  dead: number;
  /** True if vacuumed or analyzed since the statistics began, so that `live` covers all rows. */
  counted: boolean;
}

export interface Index extends Counted {
  method: string;
  unique: boolean;
  partial: boolean;
  /** True if equal keys may share an entry. */
  deduplicates: boolean;
  columns: Column[];
}

export interface Toast extends Counted {
  index_bytes: number;
  /** Mean length of sampled pieces; null if not sampled. */
  piece_bytes: number | null;
}

export interface TableParts {
  /** Size of all its files. */
  bytes: number;
  heap: Counted;
  columns: Column[];
  indexes: Index[];
  toast: Toast | undefined;
}

const PAGE = 8192;
const HEAP_ROOM = PAGE - 24;
const INDEX_ROOM = PAGE - 40;
const LINE_POINTER = 4;
const ROW_POINTER = 6;
/** A TOAST value is cut into pieces, of which four fill a page. */
const TOAST_PER_PAGE = 4;
const TOAST_INDEX_TUPLE = 16;
/** Header, identity, length and alignment of a piece. */
const TOAST_TUPLE = 40;
/** The most bytes of one posting entry for rows with equal keys. */
const POSTING_BYTES = 812;
const DEFAULT_FILL = { heap: 100, btree: 90, gist: 90 };
/** The factor for the upper levels of a btree. */
const UPPER_LEVELS = 1.005;

export function reclaimableBytes(table: TableParts): number | null {
  const rows = liveRows(table.heap);
  if (rows === undefined) return null;
  if (rows > 0 && !table.columns.some(({ avg_width: width }) => width !== null)) return null;
  const heap = Math.min(table.heap.bytes, heapBytes(rows, table.columns, table.heap.fillfactor ?? DEFAULT_FILL.heap));
  const kept = table.heap.bytes === 0 ? 1 : heap / table.heap.bytes;
  const indexes = table.indexes.map((index) => Math.min(index.bytes, indexBytes(index, rows, table, kept)));
  const needed = [heap, ...indexes, toastBytes(table.toast, rows)].reduce((sum, each) => sum + each, 0);
  return Math.max(0, Math.round(table.bytes - needed));
}

/** A crash resets the counts: until the next vacuum the catalog is more accurate. */
function liveRows({ bytes, live, dead, counted, reltuples, pages }: Counted): number | undefined {
  if (counted) return live;
  const density = pages > 0 ? reltuples / pages : 0;
  const rows = Math.max(live, (density * bytes) / PAGE);
  return rows <= 0 && dead === 0 && bytes > 0 ? undefined : rows;
}

interface Width {
  bytes: number;
  /** True if it differs between rows. */
  varies: boolean;
}

function heapBytes(rows: number, columns: Column[], fillfactor: number): number {
  const filled = columns.reduce((share, { dropped, null_frac }) => share * (dropped ? 0 : 1 - (null_frac ?? 0)), 1);
  const bitmap = filled < 1 ? Math.ceil(columns.length / 8) : 0;
  const data = dataWidth(columns.filter(({ dropped }) => !dropped));
  const tuple = aligned({ bytes: roundUp(23 + bitmap, 8) + data.bytes, varies: data.varies });
  const room = HEAP_ROOM - (PAGE * (100 - fillfactor)) / 100;
  return pagesOf(rows, room, { bytes: tuple + LINE_POINTER, varies: data.varies }) * PAGE;
}

function dataWidth(columns: Column[]): Width {
  let bytes = 0;
  let varies = false;
  for (const { length, align, avg_width: average, null_frac: nulls } of columns) {
    const present = 1 - (nulls ?? 0);
    const width = length > 0 ? length : (average ?? 0);
    const step = length < 0 && width < 127 ? 1 : align;
    const padding = varies ? (step - 1) / 2 : roundUp(bytes, step) - bytes;
    bytes += present * (padding + width);
    varies ||= length < 0 || (present > 0 && present < 1);
  }
  return { bytes, varies };
}

function aligned({ bytes, varies }: Width): number {
  return varies ? bytes + 3.5 : roundUp(bytes, 8);
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** With rows of different sizes, half a row on average is unused at the end of a page. */
function pagesOf(rows: number, room: number, { bytes, varies }: Width): number {
  const perPage = Math.max(1, varies ? room / bytes - 0.5 : Math.floor(room / bytes));
  return Math.ceil(rows / perPage);
}

/** Index types with an unknown layout are assumed to shrink with the rows. */
function indexBytes(index: Index, tableRows: number, { heap }: TableParts, kept: number): number {
  const share = index.partial && heap.reltuples > 0 ? Math.min(1, index.reltuples / heap.reltuples) : 1;
  const rows = tableRows * share;
  const isKnown = index.columns.every(({ length, avg_width }) => length > 0 || avg_width !== null);
  if (index.method === 'btree' && (isKnown || rows === 0)) return btreeBytes(index, rows);
  if (index.method === 'gist' && index.columns.every(({ length }) => length > 0)) return gistBytes(index, rows);
  return rows === 0 ? PAGE : Math.max(PAGE, index.bytes * kept);
}

function btreeBytes({ columns, fillfactor, unique, deduplicates }: Index, rows: number): number {
  if (rows === 0) return PAGE;
  const tuple = indexTuple(columns);
  const room = INDEX_ROOM - (PAGE * (100 - (fillfactor ?? DEFAULT_FILL.btree))) / 100;
  const plain = pagesOf(rows, room, { bytes: tuple.bytes + LINE_POINTER, varies: tuple.varies });
  const keys = unique || !deduplicates ? rows : distinctKeys(columns, rows);
  const leaves = Math.min(plain, sharedBytes(rows, keys, tuple.bytes) / room);
  return (1 + Math.ceil(leaves * UPPER_LEVELS)) * PAGE;
}

/** Each key once with its rows as pointers, and again if an entry is full. */
function sharedBytes(rows: number, keys: number, tuple: number): number {
  const perEntry = Math.max(1, Math.floor((POSTING_BYTES - tuple) / ROW_POINTER));
  const entries = keys * Math.ceil(Math.max(1, rows / keys / perEntry));
  return entries * (tuple + LINE_POINTER) + ROW_POINTER * Math.min(rows, 2 * (rows - keys));
}

function distinctKeys(columns: Column[], rows: number): number {
  const each = columns.map(({ n_distinct: n }) => (n === null ? rows : n < 0 ? -n * rows : n));
  return Math.max(
    1,
    Math.min(
      rows,
      each.reduce((product, n) => product * Math.max(1, n), 1),
    ),
  );
}

function gistBytes({ columns, fillfactor }: Index, rows: number): number {
  if (rows === 0) return PAGE;
  const { bytes } = indexTuple(columns);
  const room = (INDEX_ROOM * (fillfactor ?? DEFAULT_FILL.gist)) / 100;
  return (1 + Math.ceil((rows * (bytes + LINE_POINTER)) / room)) * PAGE;
}

function indexTuple(columns: Column[]): Width {
  const data = dataWidth(columns);
  const empty = columns.reduce((share, { null_frac: nulls }) => share * (1 - (nulls ?? 0)), 1);
  return { bytes: aligned({ bytes: 8 + (1 - empty) * 8 + data.bytes, varies: data.varies }), varies: data.varies };
}

/**
 * The current density is that of full pages if nothing was deleted, and never above that of a
 * rewrite.
 */
function toastBytes(toast: Toast | undefined, rows: number): number {
  if (toast === undefined) return 0;
  const pieces = rows === 0 ? 0 : liveRows(toast);
  if (pieces === undefined) return toast.bytes + toast.index_bytes;
  const density = toast.bytes > 0 ? (pieces + toast.dead) / (toast.bytes / PAGE) : 0;
  const heap = Math.ceil(pieces / Math.max(TOAST_PER_PAGE, density, piecesPerPage(toast.piece_bytes))) * PAGE;
  return Math.min(toast.bytes, heap) + Math.min(toast.index_bytes, toastIndexBytes(pieces));
}

function piecesPerPage(length: number | null): number {
  return length === null ? 0 : HEAP_ROOM / (TOAST_TUPLE + length + LINE_POINTER) - 0.5;
}

function toastIndexBytes(pieces: number): number {
  const room = INDEX_ROOM - (PAGE * (100 - DEFAULT_FILL.btree)) / 100;
  const perPage = Math.floor(room / (TOAST_INDEX_TUPLE + LINE_POINTER));
  return (1 + Math.ceil((pieces / perPage) * UPPER_LEVELS)) * PAGE;
}
