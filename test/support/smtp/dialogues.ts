/** Pieces of the dialogues that `scripted-server.ts` plays. */

/** STARTTLS is used if the server offers it. */
export const STARTTLS_ASKED = `
  S 220 mx.example ESMTP
  C EHLO mail.sender.example
  S 250-mx.example
  S 250 STARTTLS
  C STARTTLS`

/** One mail to one recipient, taken. */
export const MAIL_TAKEN = `
  C MAIL FROM:<...>...
  S 250 ok
  C RCPT TO:<...>
  S 250 ok
  C DATA
  S 354 go on
  M
  S 250 2.0.0 queued`
