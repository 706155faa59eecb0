// What SMTP_URL means: host, port, and what may be told to that server.

import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { readSmtpUrl } from '../../shared/alerts/smtp-session.ts';

describe('the address of a server', () => {
  it.each([
    ['smtp://mail.example.org', 'mail.example.org:25', 'opportunistic'],
    ['smtp://u:p@mail.example.org', 'mail.example.org:587', 'verified'],
    ['smtps://mail.example.org', 'mail.example.org:465', 'verified'],
    ['smtps://u:p@[::1]', '[::1]:465', 'none'],
    ['smtp://u:p@127.8.9.10:2525', '127.8.9.10:2525', 'none'],
    ['smtp://u:p@LocalHost', 'LocalHost:587', 'none'],
    ['smtp://u:p@127.example.org', '127.example.org:587', 'verified'],
    ['smtp://u:p@localhost.example.org', 'localhost.example.org:587', 'verified'],
    ['smtp://u:p@[::ffff:127.0.0.1]', '[::ffff:7f00:1]:587', 'verified'],
  ])('%s is %s, trust: %s', (url, place, trust) => {
    expect(readSmtpUrl(new Secret(url))).toMatchObject({ place, trust });
  });
});
