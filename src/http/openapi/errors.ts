/** Error codes in the OpenAPI description: when each occurs, and an example. */
import { given } from '../../core/given.js'
import Type from 'typebox'
import { ERRORS, VALUE_RULES, type ErrorCode } from '../../core/errors.js'

export const ErrorSchema = Type.Object(
  {
    error: Type.Object({
      code: Type.String({
        description: `One of: ${Object.keys(ERRORS).join(', ')}. New codes may be added.`,
      }),
      message: Type.String({ description: 'Human-readable explanation of the problem and how to fix it.' }),
      path: Type.Optional(Type.String({ description: 'The invalid field, e.g. `to.3`.' })),
      rule: Type.Optional(
        Type.String({
          description: `What the field breaks, where its schema says it; one of: ${VALUE_RULES.join(', ')}. New rules may be added.`,
        }),
      ),
      limit: Type.Optional(Type.Number({ description: 'Of `rule`, e.g. the most characters.' })),
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
    when: 'from_email is missing, and the workspace has no default',
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
    when: 'the resource does not exist, or belongs to another workspace',
    message: 'no domain with id 0197f9a2-7c1e-7a52-9d0c-3f0f2a1b4c5d',
  },
  workspace_not_found: {
    when: "the key's workspace was removed",
    message: "the key's workspace no longer exists",
  },
  duplicate: {
    when: 'the resource already exists',
    message: 'domain example.com already exists',
    path: 'domain',
  },
  conflict: {
    when: "the resource's current state does not allow this",
    message: 'the message has been sent already',
  },
  idempotency_conflict: {
    when: 'the Idempotency-Key was used before with a different body',
    message: 'this Idempotency-Key was used with another body',
    path: 'Idempotency-Key',
  },
  precondition_failed: {
    when: 'the resource has changed since it had the ETag in `If-Match`; nothing was done',
    message: 'the resource was changed since you read it; read it again and repeat the change',
    path: 'If-Match',
  },
  limit_reached: {
    when:
      'the request would exceed the hourly or daily limit of the workspace (Retry-After gives the start of the next period), ' +
      'or the workspace has the maximum number of these resources',
    message:
      'the workspace may send 10000 mails per day; 3 are left in this one, and the next begins at 2026-01-06T00:00:00.000Z',
  },
  rate_limited: {
    when: 'too many requests or emails in a minute; Retry-After gives the delay before a retry',
    message: 'more than 100 requests in the last minute',
  },
  invalid_schedule: {
    when: 'send_at is not in the future, or more than 72 hours ahead',
    message: 'send_at must be in the future',
    path: 'send_at',
  },
  schedule_failed: {
    when: 'the scheduled email could not be stored',
    message: 'the mail could not be scheduled',
  },
  no_content: { when: 'no html, text or template_id', message: 'give html, text or template_id' },
  sign_in_required: {
    when: 'the last sign-in is more than 15 minutes ago, and the action is sensitive; sign in again and repeat the request',
    message: 'confirm who you are, then repeat the request',
  },
  confirmation_required: {
    when: 'confirm is not true; nothing was done',
    message: 'confirm must be true',
    path: 'confirm',
  },
  unavailable: {
    when: 'the disk is full, the database is unavailable or memory is short; nothing was done, retry after Retry-After',
    message: 'the database is locked by another process; try again in a few seconds',
  },
  method_not_allowed: {
    when: 'the path does not support this method; `Allow` lists those it supports',
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
    when: 'the request headers exceed 16 KB in total',
    message: 'the headers of a request may have 16 KB together',
  },
  internal_error: {
    when: 'unexpected; it was logged and is safe to retry with backoff',
    message: 'unexpected error; it was logged and is safe to retry',
  },
}

export interface ErrorReference {
  readonly code: string
  readonly status: number
  readonly when: string
}

/** All codes, by status. */
export function listErrors(): ErrorReference[] {
  return Object.entries(EXPLANATIONS)
    .map(([code, { when }]) => ({ code, status: ERRORS[code as ErrorCode].status, when }))
    .sort((one, other) => one.status - other.status)
}

/** Codes of a status in words: `unauthorized`: the key is missing, ... */
export function explain(codes: readonly ErrorCode[]): string {
  return codes.map(code => `\`${code}\`: ${EXPLANATIONS[code].when}.`).join(' ')
}

/** An example response for each code, by code. */
export function errorExamples(codes: readonly ErrorCode[]): Record<string, { value: object }> {
  return Object.fromEntries(
    codes.map(code => {
      const { message, path } = EXPLANATIONS[code]
      return [code, { value: { error: { code, message, ...given({ path }) } } }]
    }),
  )
}
