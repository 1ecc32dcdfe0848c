/**
 * The pages of the API reference: guides, and a page for each chapter of the REST API and of the admin API.
 *
 * `routes.ts` serves them. Each is built when it is first read, from the OpenAPI documents. Pure.
 */
import { escapeHtml } from '../../core/escape-html.js'
import type { Route } from '../route.js'
import type { Chapters } from './chapters.js'
import { callOf, codeSample, LANGUAGES, type Language } from './code-samples.js'
import type { Described } from './described.js'
import { listErrors } from './errors.js'
import { Objects } from './field-list.js'
import { GUIDES, type Guide, type SampleValues } from './guides.js'
import { code, dataBlock, inline, prose } from './html.js'
import { headingsIn, markdown, slugOf } from './markdown.js'
import {
  anchored,
  callableOf,
  eventHtml,
  methodBadge,
  operationHtml,
  titleOf,
  type ApiParts,
  type Placed,
} from './operation-html.js'
import type { PageCalls, SearchEntry } from './page-data.js'
import { ADMIN_PATH, pageHtml, type NavGroup, type PageContent, type PagePart } from './page-shell.js'

/** A document and the part of the reference that shows it. */
interface Shown {
  readonly api: 'rest' | 'admin'
  readonly chapters: Chapters
  readonly read: () => Described
}

export interface ReferenceParts {
  readonly version: string
  readonly routes: readonly Route[]
  readonly chapters: Chapters
  /** The OpenAPI documents. */
  readonly rest: () => object
  readonly admin: () => object
}

export interface ReferencePage {
  readonly path: string
  readonly html: () => string
}

export function referencePages(parts: ReferenceParts): {
  readonly pages: readonly ReferencePage[]
  readonly searchIndex: () => readonly SearchEntry[]
} {
  const rest: Shown = { api: 'rest', chapters: chaptersOf(parts, undefined), read: reader(parts.rest) }
  const admin: Shown = { api: 'admin', chapters: chaptersOf(parts, 'admin'), read: reader(parts.admin) }
  const apis = Object.keys(admin.chapters).length > 0 ? [rest, admin] : [rest]
  const groups: NavGroup[] = [
    {
      title: 'Guides',
      links: [
        { path: '/docs', title: 'Introduction' },
        ...GUIDES.map(({ title }) => ({ path: guidePath(title), title })),
      ],
    },
    ...apis.map(({ api, chapters }) => ({
      title: api === 'admin' ? 'Admin API' : 'REST API',
      links: [
        ...(api === 'admin' ? [{ path: ADMIN_PATH, title: 'Overview' }] : []),
        ...Object.keys(chapters).map(title => ({ path: chapterPath(api, title), title })),
      ],
    })),
  ]
  const frame = { version: parts.version, groups }
  const page = (path: string, content: () => Omit<PageContent, 'path'>): ReferencePage => ({
    path,
    html: () => pageHtml({ path, ...content() }, frame),
  })
  return {
    pages: [
      page('/docs', () => introduction(rest)),
      ...GUIDES.map(guide => page(guidePath(guide.title), () => guidePage(guide, rest))),
      ...(apis.includes(admin) ? [page(ADMIN_PATH, () => adminOverview(admin))] : []),
      ...apis.flatMap(shown =>
        Object.keys(shown.chapters).map(name =>
          page(chapterPath(shown.api, name), () => chapterPage(name, shown)),
        ),
      ),
    ],
    searchIndex: () => [
      ...GUIDES.flatMap(guide => guideEntries(guide, rest)),
      ...apis.flatMap(shown => operationEntries(shown)),
    ],
  }
}

/** The chapters that have operations, in their order. */
function chaptersOf({ routes, chapters }: ReferenceParts, api: 'admin' | undefined): Chapters {
  const used = new Set(routes.filter(({ head }) => head.api === api).map(({ head }) => head.chapter))
  return Object.fromEntries(Object.entries(chapters).filter(([name]) => used.has(name)))
}

function chapterPath(api: Shown['api'], name: string): string {
  return `${api === 'admin' ? ADMIN_PATH : '/docs/api'}/${slugOf(name)}`
}

function guidePath(title: string): string {
  return `/docs/${slugOf(title)}`
}

function reader(make: () => object): () => Described {
  let made: Described | undefined
  return () => (made ??= JSON.parse(JSON.stringify(make())) as Described)
}

function apiParts({ api, read }: Shown): ApiParts {
  const { servers, components } = read()
  return {
    base: servers[0]?.url ?? '',
    token: api === 'admin' ? 'POSTROAD_TOKEN' : 'POSTROAD_KEY',
    objects: new Objects(components.schemas),
  }
}

function operationsOf({ read }: Shown): Placed[] {
  return Object.entries(read().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
}

/** Chapters of records that can be created begin with their collection and the record; others are in the order of the routes. */
function inReadingOrder(operations: readonly Placed[]): readonly Placed[] {
  const { path: collection } = operations.find(
    ({ method, path }) => method === 'post' && path.split('/').length === 2,
  ) ?? { path: undefined }
  if (collection === undefined) return operations
  const rank = ({ path }: Placed) =>
    path === collection ? 0 : /^\/[^/]+\/\{\w+\}$/.test(path) && path.startsWith(`${collection}/`) ? 1 : 2
  return [...operations].sort((one, other) => rank(one) - rank(other))
}

function eventsOf({ read }: Shown, chapter: string) {
  return Object.entries(read().webhooks)
    .map(([name, { post }]) => ({ name, operation: post }))
    .filter(({ operation }) => operation.tags.includes(chapter))
}

function chapterPage(name: string, shown: Shown): Omit<PageContent, 'path'> {
  const parts = apiParts(shown)
  const operations = inReadingOrder(
    operationsOf(shown).filter(({ operation }) => operation.tags.includes(name)),
  )
  const events = eventsOf(shown, name)
  const list = operations.map(
    ({ method, path, operation: { operationId } }) =>
      `<li><a href="#${escapeHtml(operationId)}">${methodBadge(method)} ${code(path)}</a></li>`,
  )
  const { base, token } = parts
  const calls = operations.map(one => [one.operation.operationId, callableOf(one)] as const)
  const data: PageCalls = { base, token, operations: Object.fromEntries(calls) }
  const shownOperations = operations.map(one => operationHtml(one, parts)).join('')
  const shownEvents = events.map(one => eventHtml(one.name, one.operation, parts)).join('')
  const objects = parts.objects.html()
  return {
    title: name,
    parts: [
      ...operations.map(({ method, operation }) => ({
        id: operation.operationId,
        title: titleOf(operation),
        method,
      })),
      ...(events.length > 0 ? [{ id: 'events', title: 'Events' }] : []),
      ...(objects === '' ? [] : [{ id: 'objects', title: 'Objects' }]),
    ],
    main:
      `<section class="operation chapter"><div class="text"><h1>${escapeHtml(name)}</h1><p class="lead">${inline(shown.chapters[name] ?? '')}</p></div>` +
      `<div class="aside"><figure class="endpoints"><figcaption>Endpoints</figcaption><ul>${list.join('')}</ul></figure></div></section>` +
      shownOperations +
      (events.length > 0
        ? `<section class="operation chapter"><div class="text"><h1 id="events">${anchored('events', 'Events')}</h1>` +
          `<p class="lead">Requests that Postroad sends to your webhooks. Their headers and signature are described in <a href="${guidePath('Webhooks')}">Webhooks</a>.</p></div></section>`
        : '') +
      shownEvents +
      (objects === ''
        ? ''
        : `<section class="objects"><h2 id="objects">${anchored('objects', 'Objects')}</h2>${objects}</section>`) +
      dataBlock('calls', data),
  }
}

function introduction(shown: Shown): Omit<PageContent, 'path'> {
  const { info } = shown.read()
  const { base } = apiParts(shown)
  const first = sampler(shown)('getKeyPermissions')
  const main =
    '<article class="guide"><h1>Postroad API</h1>' +
    `<p class="lead">Send email, keep audiences, run campaigns and automations, and follow every message.</p>` +
    `<p>Base URL: ${code(base)}</p>` +
    markdown(first === '' ? '' : `Find out what your key may do:\n\n${first}`) +
    `<h2 id="conventions">${anchored('conventions', 'Conventions')}</h2>${prose(info.description)}` +
    `<h2 id="guides">${anchored('guides', 'Guides')}</h2>` +
    cards(GUIDES.map(({ title, about }) => ({ path: guidePath(title), title, about }))) +
    `<h2 id="rest-api">${anchored('rest-api', 'REST API')}</h2>${chapterCards(shown)}</article>`
  return { title: 'Introduction', parts: [], main }
}

function adminOverview(shown: Shown): Omit<PageContent, 'path'> {
  const { info } = shown.read()
  const { base } = apiParts(shown)
  const main =
    `<article class="guide"><h1>Admin API</h1><p class="lead">Run the appliance from scripts, the console and the command line.</p>` +
    `<p>Base URL: ${code(base)}</p>${prose(info.description)}` +
    `<h2 id="chapters">${anchored('chapters', 'Chapters')}</h2>${chapterCards(shown)}</article>`
  return { title: 'Admin API', parts: [], main }
}

function chapterCards({ api, chapters }: Shown): string {
  return cards(
    Object.entries(chapters).map(([title, about]) => ({ path: chapterPath(api, title), title, about })),
  )
}

function cards(links: readonly { path: string; title: string; about: string }[]): string {
  const items = links.map(
    ({ path, title, about }) =>
      `<li><a href="${path}"><strong>${escapeHtml(title)}</strong> <span>${inline(about)}</span></a></li>`,
  )
  return `<ul class="cards">${items.join('')}</ul>`
}

function guidePage(guide: Guide, rest: Shown): Omit<PageContent, 'path'> {
  const text = guideText(guide, rest)
  return {
    title: guide.title,
    parts: headingsIn(text),
    main: `<article class="guide"><h1>${escapeHtml(guide.title)}</h1><p class="lead">${inline(guide.about)}</p>${markdown(text)}</article>`,
  }
}

function guideText({ text }: Guide, rest: Shown): string {
  return text({ base: apiParts(rest).base, sample: sampler(rest) })
}

/** Writes samples of an operation as fences, in all languages; nothing for an operation that is not there. */
function sampler(shown: Shown): (operationId: string, values?: SampleValues) => string {
  return (operationId, values) => {
    const found = operationsOf(shown).find(({ operation }) => operation.operationId === operationId)
    if (!found) return ''
    const callable = callableOf(found)
    const call = callOf(
      apiParts(shown),
      values?.body === undefined || !callable.body
        ? callable
        : { ...callable, body: { ...callable.body, example: values.body } },
      values?.parameters,
    )
    return Object.keys(LANGUAGES)
      .map(
        language =>
          `\`\`\`${language} ${call.method} ${found.path}\n${codeSample(language as Language, call)}\n\`\`\``,
      )
      .join('\n\n')
  }
}

function guideEntries(guide: Guide, rest: Shown): SearchEntry[] {
  const url = guidePath(guide.title)
  const group = 'Guides'
  const headings: PagePart[] = headingsIn(guideText(guide, rest))
  return [
    {
      title: guide.title,
      detail: guide.about.replaceAll('`', ''),
      url,
      words:
        guide.title === 'Errors'
          ? listErrors()
              .map(one => one.code)
              .join(' ')
          : '',
      group,
    },
    ...headings.map(({ id, title }) => ({
      title,
      detail: guide.title,
      url: `${url}#${id}`,
      words: '',
      group,
    })),
  ]
}

function operationEntries(shown: Shown): SearchEntry[] {
  const group = shown.api === 'admin' ? 'Admin API' : 'REST API'
  return Object.keys(shown.chapters).flatMap(name => {
    const url = chapterPath(shown.api, name)
    return [
      { title: name, detail: shown.chapters[name] ?? '', url, words: '', group },
      ...operationsOf(shown)
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ method, path, operation }) => ({
          title: titleOf(operation),
          detail: `${method.toUpperCase()} ${path}`,
          url: `${url}#${operation.operationId}`,
          words: [operation.operationId, name, operation['x-permission'] ?? ''].join(' '),
          group,
        })),
      ...eventsOf(shown, name).map(({ name: event, operation }) => ({
        title: event,
        detail: operation.summary,
        url: `${url}#${operation.operationId}`,
        words: 'event webhook',
        group,
      })),
    ]
  })
}
