/**
 * Marks what click and open tracking changes in a mail's HTML: link URLs, and the position of the pixel.
 *
 * Called once per content, after the footer was added and merge tags parsed; rendering then inserts each recipient's URLs. Everything else
 * is unchanged. Links are `href` of `<a>` and `<area>` with http(s) URLs outside comments, and of those and of drawings (VML) in Outlook's
 * conditional comments, if no merged value is in the comment.
 * Unsubscribe, preference and view links are not tracked, nor is a URL that starts in one branch of a condition and ends outside it. Pure.
 * Never throws; linear in the length of the HTML.
 */
import { TAG, type NameId } from '../../mail/html/names.js'
import {
  MarkupPlace,
  passMergedValue,
  readMarkup,
  readOutlookLinks,
  type MarkupSink,
} from '../../mail/html/read-markup.js'
import type { MergeNode, MergeTemplate } from '../merge/merge-tree.js'
import { followedUrl, withParameters, type UrlParameters } from './followed-url.js'

export interface TrackingOptions {
  readonly opens: boolean
  /** Parameters added to link URLs; absent if clicks are not tracked. */
  readonly clicks?: UrlParameters
}

/** System tags for links to this server. */
const MANAGED_URLS: ReadonlySet<string> = new Set(['unsubscribe_url', 'preferences_url', 'view_url'])

export function trackTemplate(template: MergeTemplate, { opens, clicks }: TrackingOptions): MergeTemplate {
  if (template.place !== 'html' || !(opens || clicks !== undefined)) return template
  const place = new MarkupPlace()
  const list = new TrackedList(place, clicks)
  list.read(template.nodes)
  return { ...template, nodes: joined(opens ? withPixel(list, place) : list.nodes) }
}

/** Before the last `</body>`, else the last `</html>`, else at the end. Omitted if that is inside a branch or not in text. */
function withPixel({ nodes, ends }: TrackedList, place: MarkupPlace): MergeNode[] {
  const end = ends.get(TAG.body) ?? ends.get(TAG.html) ?? 'unknown'
  if (end !== 'unknown') return [...nodes.slice(0, end), { kind: 'pixel' }, ...nodes.slice(end)]
  return place.isInText ? [...nodes, { kind: 'pixel' }] : nodes
}

/** The nodes of one branch, or of the whole template. */
class TrackedList {
  readonly nodes: MergeNode[] = []
  /** Index in `nodes` of the last end tag of each kind; `unknown` if it is inside a branch. */
  readonly ends = new Map<NameId, number | 'unknown'>()
  private readonly place: MarkupPlace
  private readonly clicks: UrlParameters | undefined
  private readonly outer: TrackedList | undefined
  /** Parts of the current URL; undefined outside one. */
  private href: MergeNode[] | undefined

  constructor(place: MarkupPlace, clicks: UrlParameters | undefined, outer?: TrackedList) {
    this.place = place
    this.clicks = clicks
    this.outer = outer
  }

  read(nodes: readonly MergeNode[]): void {
    for (const node of nodes)
      if (typeof node === 'string') this.readText(node)
      else this.readNode(node)
    // A URL still open here ends outside this branch.
    this.giveUpHref()
  }

  private readText(text: string): void {
    let from = 0
    const takeUntil = (at: number) => {
      this.put(text.slice(from, at))
      from = at
    }
    const sink: MarkupSink = {
      hrefBegins: at => {
        takeUntil(at)
        this.beginHref()
      },
      hrefEnds: at => {
        takeUntil(at)
        this.endHref()
      },
      outlookComment: (start, end) =>
        readOutlookLinks(text.slice(start, end), (begins, ends) => {
          takeUntil(start + begins)
          this.beginHref()
          takeUntil(start + ends)
          this.endHref()
        }),
      endTag: (tag, at) => {
        if (tag !== TAG.body && tag !== TAG.html) return
        takeUntil(at)
        this.noteEnd(tag, this.nodes.length)
      },
    }
    readMarkup(this.place, text, sink)
    takeUntil(text.length)
  }

  private readNode(node: Exclude<MergeNode, string>): void {
    if (node.kind === 'choice') {
      const [whenTrue = [], whenFalse = []] = this.readBranches([node.whenTrue, node.whenFalse])
      this.put({ ...node, whenTrue, whenFalse })
    } else if (node.kind === 'loop') {
      const [body = [], whenEmpty = []] = this.readBranches([node.body, node.whenEmpty])
      this.put({ ...node, body, whenEmpty })
    } else {
      passMergedValue(this.place, { hrefBegins: () => this.beginHref() })
      this.put(node)
    }
  }

  /** Each branch starts at the block's position; reading continues from the end of the first non-empty one. */
  private readBranches(branches: readonly (readonly MergeNode[])[]): MergeNode[][] {
    const start = this.place.copy()
    const clicks = this.href ? undefined : this.clicks
    let end: MarkupPlace | undefined
    const read = branches.map(nodes => {
      const place = start.copy()
      const list = new TrackedList(place, clicks, this)
      list.read(nodes)
      if (nodes.length > 0) end ??= place
      return list.nodes
    })
    this.place.moveTo(end ?? start)
    if (!this.place.isInHref) this.giveUpHref()
    return read
  }

  private beginHref(): void {
    this.href = this.clicks ? [] : undefined
  }

  private noteEnd(tag: NameId, at: number | 'unknown'): void {
    this.ends.set(tag, at)
    this.outer?.noteEnd(tag, 'unknown')
  }

  private put(node: MergeNode): void {
    if (node !== '') (this.href ?? this.nodes).push(node)
  }

  private endHref(): void {
    const written = this.href
    if (!written) return
    this.href = undefined
    this.nodes.push(...linkOf(written, this.clicks ?? {}))
  }

  private giveUpHref(): void {
    const written = this.href
    this.href = undefined
    if (written) this.nodes.push(...written)
  }
}

function linkOf(written: readonly MergeNode[], parameters: UrlParameters): readonly MergeNode[] {
  if (isManaged(written)) return written
  const [first] = written
  if (written.every(node => typeof node === 'string')) {
    const url = followedUrl(written.join(''))
    if (url === undefined) return written
    return [{ kind: 'link', written, url: withParameters(url, parameters) }]
  }
  // The text starts with another scheme, or with a fragment of this mail.
  const isElsewhere = typeof first === 'string' && /^\s*(#|(?!https?:)[a-z][a-z0-9+.-]*:)/i.test(first)
  return isElsewhere ? written : [{ kind: 'link', written }]
}

function isManaged(nodes: readonly MergeNode[]): boolean {
  return nodes.some(node => {
    if (typeof node === 'string') return false
    if (node.kind === 'value') return node.lookup.of === 'root' && MANAGED_URLS.has(node.lookup.name)
    if (node.kind === 'url') return isManaged(node.parts)
    if (node.kind === 'choice') return isManaged(node.whenTrue) || isManaged(node.whenFalse)
    return node.kind === 'loop' && (isManaged(node.body) || isManaged(node.whenEmpty))
  })
}

function joined(nodes: readonly MergeNode[]): MergeNode[] {
  const all: MergeNode[] = []
  for (const node of nodes) {
    const last = all.at(-1)
    if (typeof node === 'string' && typeof last === 'string') all[all.length - 1] = last + node
    else all.push(node)
  }
  return all
}
