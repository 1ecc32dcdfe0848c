/**
 * Fetches a feed over HTTP and parses it.
 *
 * Under the egress policy of URLs that workspaces name, at every redirect. Bounded in time, size and redirects. Sends the validators of
 * the last content, so an unchanged feed costs one small answer.
 * Throws FeedError for whatever is wrong with the feed, its host or the network, worded for its owner.
 * Standards: RFC 9110 §13.1 (conditional requests), §15.4 (redirects); XML 1.0 appendix F (encoding); RFC 3023 §3.
 */
import { gunzip } from 'node:zlib'
import { promisify } from 'node:util'
import { describeError } from '../core/errors.js'
import { formatSize } from '../core/units.js'
import { VERSION } from '../core/version.js'
import { decodeCharset, isKnownCharset } from '../mail/mime/charset.js'
import { findEgressFault, type EgressPolicy } from '../world/net/egress-policy.js'
import type { HttpClient, HttpResponse } from '../world/net/fetch.js'
import type { Clock } from '../world/time/clock.js'
import { FeedError, type Feed, type ReadFeed } from './feed.js'
import { readJsonFeed } from './json-feed.js'
import { readXmlFeed } from './xml-feed.js'

/** All requests together, ms. */
export const FETCH_MS = 20_000
export const MAX_OCTETS = 2 * 1_024 * 1_024
const MAX_REDIRECTS = 5
/** Longer validators are not kept. */
const MAX_VALIDATOR = 500

export interface FetchParts {
  readonly http: HttpClient
  readonly egress: EgressPolicy
  readonly clock: Clock
}

export interface FetchedFeed {
  readonly feed: ReadFeed
  readonly etag: string | null
  readonly lastModified: string | null
}

/** @returns undefined if it has not changed since the validators were given @throws FeedError */
export async function fetchFeed(
  parts: FetchParts,
  { url, etag = null, lastModified = null }: Pick<Feed, 'url'> & Partial<Pick<Feed, 'etag' | 'lastModified'>>,
): Promise<FetchedFeed | undefined> {
  const validators = {
    ...(etag === null ? {} : { 'If-None-Match': etag }),
    ...(lastModified === null ? {} : { 'If-Modified-Since': lastModified }),
  }
  const { response, at } = await follow(parts, url, validators)
  const { status, headers } = response
  if (status === 304 && Object.keys(validators).length > 0) return undefined
  if (status === 410) throw new FeedError('the feed is gone (HTTP 410)')
  if (status !== 200) throw new FeedError(`the server answered HTTP ${status}`)
  if (response.isTruncated) throw tooLarge()
  const octets = await unpacked(response)
  return {
    feed: await parseFeed(octets, headers['content-type'] ?? '', at),
    etag: validatorOf(headers['etag']),
    lastModified: validatorOf(headers['last-modified']),
  }
}

async function follow(
  { http, egress, clock }: FetchParts,
  from: string,
  validators: Readonly<Record<string, string>>,
): Promise<{ readonly response: HttpResponse; readonly at: string }> {
  const endsAt = clock.monotonic() + FETCH_MS
  let at = from
  for (let redirects = 0; ; redirects += 1) {
    const fault = findEgressFault(at, egress)
    if (fault !== undefined) throw new FeedError(`${redirects === 0 ? 'its' : 'a redirect’s'} URL ${fault}`)
    const response = await request(http, at, validators, Math.max(1, endsAt - clock.monotonic()))
    const { location } = response.headers
    if (![301, 302, 303, 307, 308].includes(response.status) || location === undefined)
      return { response, at }
    if (redirects >= MAX_REDIRECTS) throw new FeedError(`more than ${MAX_REDIRECTS} redirects`)
    if (!URL.canParse(location, at))
      throw new FeedError('the server redirects to something that is not a URL')
    at = new URL(location, at).href
  }
}

async function request(
  http: HttpClient,
  url: string,
  validators: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<HttpResponse> {
  try {
    return await http.request({
      method: 'GET',
      url,
      headers: {
        Accept:
          'application/rss+xml, application/atom+xml, application/feed+json, application/xml, application/json, */*;q=0.5',
        'User-Agent': `Postroad/${VERSION}`,
        ...validators,
      },
      timeoutMs,
      maxBytes: MAX_OCTETS,
    })
  } catch (error) {
    throw new FeedError(`it could not be fetched: ${describeError(error)}`)
  }
}

const gunzipAsync = promisify(gunzip)

/** Compression is not asked for, but some servers send nothing else. */
async function unpacked({ body, headers }: HttpResponse): Promise<Buffer> {
  const coding = (headers['content-encoding'] ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return body
  if (coding !== 'gzip' && coding !== 'x-gzip')
    throw new FeedError(`the server compressed it as ${coding.slice(0, 40)}, which was not asked for`)
  try {
    return await gunzipAsync(body, { maxOutputLength: MAX_OCTETS })
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw new FeedError('the compressed answer is damaged')
  }
}

function tooLarge(): FeedError {
  return new FeedError(`the feed is larger than ${formatSize(MAX_OCTETS)}`)
}

/** @param url where it was read @throws FeedError */
export async function parseFeed(octets: Buffer, contentType: string, url: string): Promise<ReadFeed> {
  const text = decoded(octets, contentType)
  if (text.trim() === '') throw new FeedError('the answer is empty')
  return /^\s*\{/.test(text) ? readJsonFeed(text, url) : readXmlFeed(text, url)
}

const BYTE_ORDER_MARKS = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-16be', [0xfe, 0xff]],
  ['utf-16le', [0xff, 0xfe]],
] as const

/** By byte order mark, Content-Type or XML declaration, in this order; else UTF-8, or windows-1252 if it is not. */
function decoded(octets: Buffer, contentType: string): string {
  const marked = BYTE_ORDER_MARKS.find(([, mark]) => mark.every((octet, at) => octets[at] === octet))
  if (marked) return decodeCharset(octets, marked[0]).replace(/^\ufeff/, '')
  const declared = /^\s*<\?xml[^>]{0,200}\sencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(
    octets.subarray(0, 300).toString('latin1'),
  )?.[1]
  const named = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(contentType)?.[1]
  const charset = [named, declared].find(one => one !== undefined && isKnownCharset(one.toLowerCase()))
  return decodeCharset(octets, charset)
}

function validatorOf(field: string | undefined): string | null {
  return field === undefined || field.length > MAX_VALIDATOR || !/^[\x20-\x7e]+$/.test(field) ? null : field
}
