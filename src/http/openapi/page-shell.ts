/**
 * The frame of every page of the API reference: head, top bar, navigation, and the files that a browser loads with it.
 *
 * Script and style sheet are bundled from `browser/` and served under the digest of their contents, so browsers may keep them. The policy
 * allows nothing inline and nothing from elsewhere. Pages are complete without the script.
 * Standards: CSP Level 3; Trusted Types.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { escapeHtml } from '../../core/escape-html.js'
import { embeddedFile } from '../../world/embedded/embedded-files.js'
import { methodBadge } from './operation-html.js'

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
}

/** A file that pages load. */
export interface PageFile {
  readonly path: string
  readonly mediaType: string
  readonly text: string
}

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d5fa8"/>' +
  '<path d="M7 11h18v11H7z M7 11l9 7 9-7" fill="none" stroke="#fff" stroke-width="2.2" stroke-linejoin="round"/></svg>'

export const PAGE_FILES = {
  script: pageFile('reference.js', 'text/javascript', readBundled('reference.js')),
  style: pageFile('reference.css', 'text/css', readBundled('reference.css')),
  icon: pageFile('icon.svg', 'image/svg+xml', ICON),
} as const satisfies Record<string, PageFile>

function pageFile(name: string, mediaType: string, text: string): PageFile {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return { path: `/docs/${name.replace('.', `-${digest}.`)}`, mediaType, text }
}

function readBundled(name: string): string {
  const inside = embeddedFile(name)
  return inside
    ? Buffer.from(inside).toString()
    : readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8')
}

export interface NavGroup {
  readonly title: string
  readonly links: readonly { readonly path: string; readonly title: string }[]
}

/** An operation or heading of the current page, listed below its link. */
export interface PagePart {
  readonly id: string
  readonly title: string
  readonly method?: string
}

export interface PageContent {
  readonly path: string
  readonly title: string
  readonly parts: readonly PagePart[]
  /** HTML. */
  readonly main: string
}

export interface PageFrame {
  readonly version: string
  readonly groups: readonly NavGroup[]
}

export function pageHtml({ path, title, parts, main }: PageContent, { version, groups }: PageFrame): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)} – Postroad API</title>
<link rel="icon" href="${PAGE_FILES.icon.path}"><link rel="stylesheet" href="${PAGE_FILES.style.path}">
<script src="${PAGE_FILES.script.path}"></script></head><body>
<a class="skip" href="#main">Skip to content</a>
<header class="top"><button class="menu" type="button" popovertarget="nav" aria-label="Menu">${MENU_ICON}</button>
<a class="brand" href="/docs">${BRAND_ICON}Postroad <span>API</span></a><span class="version">${escapeHtml(version)}</span></header>
<nav id="nav" popover aria-label="Reference">${groups.map(group => navGroup(group, path, parts)).join('')}
<div class="group"><p>Machine-readable</p><ul><li><a href="/openapi.json">openapi.json</a></li>${
    groups.some(({ links }) => links.some(one => one.path === ADMIN_PATH))
      ? '<li><a href="/admin/openapi.json">admin/openapi.json</a></li>'
      : ''
  }</ul></div></nav>
<main id="main">${main}</main>
</body></html>
`
}

export const ADMIN_PATH = '/docs/admin'

const MENU_ICON =
  '<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M4 7h16M4 12h16M4 17h16"/></svg>'
const BRAND_ICON =
  '<svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><rect width="32" height="32" rx="8"/><path d="M7 11h18v11H7z M7 11l9 7 9-7"/></svg>'

function navGroup({ title, links }: NavGroup, current: string, parts: readonly PagePart[]): string {
  const items = links.map(link => {
    const isCurrent = link.path === current
    const inner = isCurrent && parts.length > 0 ? `<ul>${parts.map(navPart).join('')}</ul>` : ''
    return `<li><a href="${link.path}"${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(link.title)}</a>${inner}</li>`
  })
  return `<div class="group"><p>${escapeHtml(title)}</p><ul>${items.join('')}</ul></div>`
}

function navPart({ id, title, method }: PagePart): string {
  const badge = method === undefined ? '' : `${methodBadge(method)} `
  return `<li><a href="#${escapeHtml(id)}">${badge}<span>${escapeHtml(title)}</span></a></li>`
}
