// What kept connections are made and asked with: a file of its own, so that it is loaded at the first request and not at the
// start of management.

export { default as request } from 'undici/lib/api/api-request.js';
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
