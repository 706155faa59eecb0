// The text of an alert, as people receive it.

/** One message in every form that a channel may need. */
export interface Message {
  /** Unique and the same for every attempt, so that a service or a mail client can drop what it has seen already. */
  id: string;
  /** Plain ASCII, one line. */
  subject: string;
  text: string;
  html: string;
  /** For SMS: printable ASCII, at most 300 characters, one line. */
  brief: string;
}
