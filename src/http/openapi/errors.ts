/** What the OpenAPI page says of errors: of each code when it comes, and an answer that carries it. */
import { given } from '../../core/given.js'
import Type from 'typebox'
import { ERRORS, type ErrorCode } from '../../core/errors.js'

export const ErrorSchema = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ description: `One of: ${Object.keys(ERRORS).join(', ')}. More may come.` }),
      message: Type.String({ description: 'What is wrong and what to change, for people.' }),
      path: Type.Optional(Type.String({ description: 'The field at fault, e.g. `to.3`.' })),
    }),
  },
  { title: 'Error' },
)

interface Explanation {
  readonly when: string
  readonly message: string
  readonly path?: string
}

const EXPLANATIONS: Readonly<Record<ErrorCode, Explanation>> = {
  validation_error: {
    when: 'body, query or path failed validation; `path` names the field',
    message: 'subject is required',
    path: 'subject',
  },
  unauthorized: {
    when: 'the key is missing, unknown or revoked',
    message: 'the API key is unknown or revoked',
  },
  forbidden: { when: 'the key lacks the permission', message: 'this key lacks the permission domains:write' },
  missing_from_email: {
    when: 'no from_email, and the workspace has no default',
    message: 'from_email is required: the workspace has no default',
    path: 'from_email',
  },
  domain_invalid: {
    when: 'the domain of from_email is unverified or lacks DKIM',
    message: 'example.com has not been verified',
    path: 'from_email',
  },
  template_not_found: { when: 'no such template', message: 'no such template', path: 'template_id' },
  contact_not_found: { when: 'no such contact', message: 'no such contact', path: 'contact_id' },
  not_found: {
    when: 'there is no such thing, or it belongs to another workspace',
    message: 'no domain with id 0197f9a2-7c1e-7a52-9d0c-3f0f2a1b4c5d',
  },
  workspace_not_found: {
    when: "the key's workspace was removed",
    message: "the key's workspace no longer exists",
  },
  duplicate: { when: 'it exists already', message: 'domain example.com already exists', path: 'domain' },
  conflict: {
    when: 'its present state does not allow it',
    message: 'the message has been sent already',
  },
  idempotency_conflict: {
    when: 'the same Idempotency-Key came before with another body',
    message: 'this Idempotency-Key was used with another body',
    path: 'Idempotency-Key',
  },
  precondition_failed: {
    when: 'the resource was changed since it had the ETag in `If-Match`; nothing was done',
    message:
      'this was changed since: its ETag is now "mWq3T0kQ4cLrX1b2Zs7f9A"; read it again and repeat the change',
    path: 'If-Match',
  },
  limit_reached: {
    when:
      'the hourly or daily limit of the workspace would be crossed, where Retry-After says when the next hour or day begins; ' +
      'or it has as many of these as a workspace can have',
    message:
      'the workspace may send 10000 mails per day; 3 are left in this one, and the next begins at 2026-01-06T00:00:00.000Z',
  },
  rate_limited: {
    when: 'too many requests or emails in a minute; Retry-After says when to come again',
    message: 'more than 100 requests in the last minute',
  },
  invalid_schedule: {
    when: 'send_at is not in the future, or beyond 72 hours',
    message: 'send_at must be in the future',
    path: 'send_at',
  },
  schedule_failed: {
    when: 'the scheduled mail could not be stored',
    message: 'the mail could not be scheduled',
  },
  no_content: { when: 'no html, text or template_id', message: 'give html, text or template_id' },
  confirmation_required: {
    when: 'confirm is not true; nothing was done',
    message: 'confirm must be true',
    path: 'confirm',
  },
  unavailable: {
    when: 'disk, database or memory has no room at the moment; nothing was done, and Retry-After says when to come again',
    message: 'the database is locked by another process; try again in a few seconds',
  },
  method_not_allowed: {
    when: 'the path does not take this method; `Allow` names those it takes',
    message: 'this path takes GET, HEAD, OPTIONS',
  },
  request_timeout: {
    when: 'the request did not arrive in time',
    message: 'the body did not arrive in time; send it again',
  },
  unsupported_media_type: {
    when: 'the body is neither plain nor gzip, or not in UTF-8',
    message: 'Content-Encoding may be gzip, or left out',
    path: 'Content-Encoding',
  },
  headers_too_large: {
    when: 'the headers of the request have more than 16 KB together',
    message: 'the headers of a request may have 16 KB together',
  },
  internal_error: {
    when: 'unexpected; it was logged and is safe to retry with backoff',
    message: 'unexpected error; it was logged and is safe to retry',
  },
}

/** Codes of one status in words: `unauthorized`: the key is missing, ... */
export function explain(codes: readonly ErrorCode[]): string {
  return codes.map(code => `\`${code}\`: ${EXPLANATIONS[code].when}.`).join(' ')
}

/** One answer for each code, by code. */
export function errorExamples(codes: readonly ErrorCode[]): Record<string, { value: object }> {
  return Object.fromEntries(
    codes.map(code => {
      const { message, path } = EXPLANATIONS[code]
      return [code, { value: { error: { code, message, ...given({ path }) } } }]
    }),
  )
}
