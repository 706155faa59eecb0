// Senders that mail can come from, and texts that look like one.

export const SENDERS = [
  'a@b.org',
  'ops+alerts@localhost',
  'Holdfast <a@b.org>',
  'Duty, Desk. (night) <a@b.org>',
  '"Duty; Desk" <a@b.org>',
  'Dr. "Bo" O\'Neil \\ <a@b.org>',
  'Grüße vom Öl <a@b.org>',
  'chief@b.org <a@b.org>',
  'a.b@b.org',
];

export const NO_SENDERS = [
  'ops;a@x.org',
  'a@x.org;b@x.org',
  'a@x.org, b@x.org',
  'Duty <a,b@x.org>',
  'Duty <a@x.org>, Chief <b@x.org>',
  'Duty <a@x.org> b',
  '"q"@x.org',
  'a b@x.org',
  '.a@x.org',
  'a..b@x.org',
  'a.@x.org',
  'a@x_y.org',
  'a@-x.org',
  'a@x..org',
  'a@höfe.org',
  'ö@x.org',
  'a@[127.0.0.1]',
  'Duty\r\nBcc: x@x.org <a@x.org>',
  'Duty\u2028<a@x.org>',
  `${'a'.repeat(65)}@x.org`,
  `a@${'x.'.repeat(130)}org`,
];
