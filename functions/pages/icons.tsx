// Drawings beside words: lines on a grid of 24, in the colour of the text around them. They say nothing to a screen reader.

const PATHS: Record<string, string> = {
  overview: 'M4 13h6V4H4zM14 20h6V4h-6zM4 20h6v-3H4z',
  home: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  devices: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  'add-device': 'M12 5v14M5 12h14',
  guides: 'M4 5a8 8 0 0 1 8 1.5A8 8 0 0 1 20 5v13a8 8 0 0 0-8 1.5A8 8 0 0 0 4 18zM12 6.5v13',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6.3M18 14.5a6 6 0 0 1 3 5.5',
  database:
    'M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0',
  more: 'M4 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0zM11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0zM18 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0z',
  ok: 'M5 12.5l4.5 4.5L19 7.5',
  note: 'M12 11v6M12 7.5h.01',
  warning: 'M12 8v5.5M12 17h.01M12 3L2.5 20.5h19z',
  critical: 'M7 7l10 10M17 7L7 17',
};

/** Nothing where there is no drawing of that name. */
export function Icon({ name }: { name: string }) {
  const path = PATHS[name];
  if (path === undefined) return null;
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}
