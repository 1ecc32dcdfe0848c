/**
 * Serves the console's files, and its only page for every path below `/console/`.
 *
 * The console is a client of the REST API and the admin API like any other: nothing here reads data or authenticates. Files were built
 * and gzipped by Vite; those below `assets/` have a digest in their name, so browsers may keep them.
 * Standards: CSP Level 3; RFC 9110 (ETag, conditional GET, Accept-Encoding).
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { embeddedFile } from '../world/embedded/embedded-files.js'
import type { HttpHandler } from '../world/net/http-connections.js'

/** Sent with every response. Mail is shown in a sandboxed frame with its own policy. */
const HEADERS: OutgoingHttpHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  // A page that opened the console keeps no handle on its window.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'X-Robots-Tag': 'noindex, nofollow',
}

/** Shows mail within the console: its own script alone, without an origin, and whatever a mail loads from elsewhere. */
const FRAME = 'mail-frame.html'

function framePolicy(page: string): string {
  const script = /<script>([^]*?)<\/script>/.exec(page)?.[1] ?? ''
  return [
    'sandbox allow-scripts',
    "default-src 'none'",
    `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    "style-src 'unsafe-inline' https: http:",
    'img-src data: https: http:',
    'font-src data: https: http:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ')
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

const BASE = '/console'
const PAGE = 'index.html'

interface ConsoleFile {
  readonly gzipped: Buffer
  readonly headers: OutgoingHttpHeaders
}

/** The API's listeners with the console beside it. A browser that opens `/` is sent there. */
export function withConsole(api: HttpHandler): HttpHandler {
  const names = new Set(JSON.parse(readBuilt('files.json').toString()) as string[])
  const read = new Map<string, ConsoleFile>()
  const fileAt = (name: string): ConsoleFile => {
    const file = read.get(name) ?? describe(name, readBuilt(`${name}.gz`))
    read.set(name, file)
    return file
  }
  const answer = (request: IncomingMessage, response: ServerResponse, path: string): void => {
    const name = path.slice(BASE.length + 1)
    if (!['GET', 'HEAD'].includes(request.method ?? '')) end(response, 405, { Allow: 'GET, HEAD' })
    else if (path === '/') end(response, 302, { Location: `${BASE}/` })
    else if (path === BASE) end(response, 308, { Location: `${BASE}/` })
    else if (names.has(name)) send(request, response, fileAt(name))
    else if (name.startsWith('assets/')) end(response, 404, {})
    else send(request, response, fileAt(PAGE))
  }
  return {
    async handle(request, response) {
      const { method, headers, url = '' } = request
      const path = url.split('?', 1)[0] ?? ''
      const isForBrowser = path === '/' && method === 'GET' && headers.accept?.includes('text/html')
      if (isForBrowser || path === BASE || path.startsWith(`${BASE}/`)) answer(request, response, path)
      else await api.handle(request, response)
    },
    answerFault: (fault, address) => api.answerFault(fault, address),
  }
}

function readBuilt(name: string): Buffer {
  const inside = embeddedFile(`console/${name}`)
  return inside ? Buffer.from(inside) : readFileSync(new URL(`./console/${name}`, import.meta.url))
}

function describe(name: string, gzipped: Buffer): ConsoleFile {
  const digest = createHash('sha256').update(gzipped).digest('base64url').slice(0, 22)
  return {
    gzipped,
    headers: {
      ...HEADERS,
      ...(name === FRAME
        ? {
            'Content-Security-Policy': framePolicy(gunzipSync(gzipped).toString()),
            'Referrer-Policy': 'no-referrer',
          }
        : {}),
      'Content-Type': MEDIA_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
      'Cache-Control': name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
      ETag: `"${digest}"`,
      Vary: 'Accept-Encoding',
    },
  }
}

function send(request: IncomingMessage, response: ServerResponse, { gzipped, headers }: ConsoleFile): void {
  if (request.headers['if-none-match'] === headers['ETag']) {
    end(response, 304, headers)
    return
  }
  const isCompressed = /\bgzip\b/.test(String(request.headers['accept-encoding']))
  const body = isCompressed ? gzipped : gunzipSync(gzipped)
  response.writeHead(200, {
    ...headers,
    ...(isCompressed ? { 'Content-Encoding': 'gzip' } : {}),
    'Content-Length': body.length,
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function end(response: ServerResponse, status: number, headers: OutgoingHttpHeaders): void {
  response.writeHead(status, { ...HEADERS, ...headers }).end()
}
