/**
 * Entity tags: `ETag` on answers, `If-None-Match` on reads, `If-Match` on writes.
 *
 * Used by `app.ts` for routes with `hasEtag` or `checksEtag`. Handlers return `Tagged` values and check `If-Match` inside the
 * transaction of the change, so that of two editors with the same tag only the first succeeds.
 *
 * A tag is `"version.content"`. The version is the handler's: what people edit. The content is a digest of all that the answer shows,
 * counts included. If-None-Match compares both, so 304 is never answered for something that looks different. If-Match compares the
 * version only: a new member of a list is no conflict for those who edit the list.
 * Standard: RFC 9110 §8.8.3 (syntax), §13.1.1 (If-Match, strong comparison), §13.1.2 (If-None-Match, weak comparison).
 * Fails: AppError validation_error (malformed header), precondition_failed.
 */
import { createHash } from 'node:crypto'
import { AppError } from '../core/errors.js'

/** Condition on the current state of a resource. */
export interface Precondition {
  /** @param version of the stored resource @throws AppError precondition_failed */
  check(version: string): void
}

/** An answer with the version of its resource. */
export class Tagged<T> {
  readonly value: T
  /** Version of the resource, from `etagOf`. */
  readonly etag: string
  readonly status: number | undefined

  /** @param status if not the route's default */
  constructor(value: T, etag: string, status?: number) {
    this.value = value
    this.etag = etag
    this.status = status
  }
}

/** A version. @param revision everything that distinguishes editable states of the resource */
export function etagOf(...revision: readonly unknown[]): string {
  return `"${digestOf(revision)}"`
}

/** The strong entity tag of an answer. @param version from `etagOf` @param value all that the answer shows */
export function answerEtag(version: string, value: unknown): string {
  return `${version.slice(0, -1)}.${digestOf(value)}"`
}

function versionOf(etag: string): string {
  return etag.replace(/\.[^.]*"$/, '"')
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)
}

/** @param header empty if absent */
export function readIfMatch(header: string): Precondition | undefined {
  if (header.trim() === '') return undefined
  const tags = readTags(header, 'If-Match')
  return {
    check(version) {
      if (tags === '*' || tags.some(tag => versionOf(tag) === version)) return
      throw new AppError(
        'precondition_failed',
        'the resource was changed since you read it; read it again and repeat the change',
        { path: 'If-Match' },
      )
    },
  }
}

/** @param header empty if absent */
export function isNoneMatch(header: string, etag: string): boolean {
  if (header.trim() === '') return true
  const tags = readTags(header, 'If-None-Match')
  return tags !== '*' && !tags.some(tag => tag.replace(/^W\//, '') === etag)
}

/** One element of the list, which may be empty (RFC 9110 §5.6.1.2), with its comma. */
const ELEMENT = /[ \t]*(?:((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*)?(?:,|$)/gy

function readTags(header: string, name: string): readonly string[] | '*' {
  if (header.trim() === '*') return '*'
  const elements = [...header.matchAll(ELEMENT)]
  const tags = elements.flatMap(([, tag]) => tag ?? [])
  const length = elements.reduce((sum, [element]) => sum + element.length, 0)
  if (tags.length === 0 || length < header.length)
    throw new AppError('validation_error', `${name} must be * or a list of entity tags in double quotes`, {
      path: name,
    })
  return tags
}
