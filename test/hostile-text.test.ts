/**
 * Text that outsiders write is read in time linear in its length: header fields, templates, links, mail, records in DNS, replies.
 *
 * Each row is an input that takes quadratic or exponential time where the expression or loop that reads it is carelessly written.
 */
import t from 'tap'
import { readTags } from '../src/audience/transfer/reading/read-row.js'
import { readJsonFeed } from '../src/feeds/json-feed.js'
import { subjectFindings } from '../src/campaigns/preflight/findings.js'
import { FeatureFinder } from '../src/content/clients/client-features.js'
import { readVisibleHtml } from '../src/content/footer/visible-html.js'
import { parseTemplate } from '../src/content/merge/parse-template.js'
import { inspectHtml } from '../src/content/rendering/inspect-html.js'
import { followedUrl } from '../src/content/tracking/followed-url.js'
import { parseDuration } from '../src/core/units.js'
import { readRecord } from '../src/deliverability/domains/spf-record.js'
import { isNoneMatch, readIfMatch } from '../src/http/preconditions.js'
import { encodeText } from '../src/mail/compose/encoded-text.js'
import { foldField, stripTags } from '../src/mail/mime/write-header-field.js'
import { plainTextOf } from '../src/mail/compose/plain-text.js'
import { recordMatchesKey } from '../src/mail/dkim/dkim-record.js'
import { canonicalField, fieldName } from '../src/mail/dkim/dkim-sign.js'
import { decodeWords } from '../src/mail/mime/encoded-word.js'
import { parameter, readMediaType } from '../src/mail/mime/media-type.js'
import { readAddressList } from '../src/mail/relay/address-list.js'
import { parseStsPolicy } from '../src/mta/routing/mta-sts.js'
import { alike } from '../src/queue/operator/recent-replies.js'
import { assertBoundedSteps } from './support/count-steps.js'

/** @returns the piece repeated to about this length, in as many tags as hold it, each no longer than a tag may be */
function inTags(length: number, before: string, piece: string, after: string): string {
  const tag = before + piece.repeat(900 / piece.length) + after
  return tag.repeat(Math.ceil(length / tag.length))
}

const visible = (html: string) => readVisibleHtml(html, 'https://mail.example/u/')
const url = (length: number) => 'https://a.example/' + ' '.repeat(length)

const READERS: Readonly<Record<string, (length: number) => unknown>> = {
  'If-Match with empty elements': length => readIfMatch('"a"' + ', '.repeat(length / 2) + 'x'),
  'If-Match with blanks and no comma': length => readIfMatch('"a"' + ' '.repeat(length) + 'x'),
  'If-Match with a tag that is not closed': length => readIfMatch('"a",'.repeat(length / 4) + '"'),
  'If-None-Match with commas first': length => isNoneMatch(' ,\t'.repeat(length / 3) + 'x', '"a"'),
  'a link with blanks inside': length => followedUrl(`${url(length)}x`),
  'a link with blanks around it': length => followedUrl(' '.repeat(length) + url(length)),
  'a link of references': length => followedUrl('&#'.repeat(length / 2)),
  'a condition with blanks': length => parseTemplate(inTags(length, '{{#if a', ' ', 'b}}x{{/if}}'), 'html'),
  'a comparison with blanks': length =>
    parseTemplate(inTags(length, '{{#if a', ' ', '== "b"}}x{{/if}}'), 'html'),
  'a condition of quotes': length => parseTemplate(inTags(length, '{{#if ', '"a"', "'}}x{{/if}}"), 'html'),
  'a block with blanks before its name': length =>
    parseTemplate(inTags(length, '{{#', ' ', 'if a}}x{{/if}}'), 'html'),
  'an else with blanks': length =>
    parseTemplate(inTags(length, '{{#if a}}x{{else if', ' ', 'b}}x{{/if}}'), 'html'),
  'braces that open no tag': length => parseTemplate('\\{{'.repeat(length / 3), 'text'),
  'tags in a subject': length => subjectFindings('{{'.repeat(length / 2)),
  'names of CSS functions': length => new FeatureFinder().addSheet(`a{b:${'c'.repeat(length)}}`),
  'CSS without braces': length => new FeatureFinder().addSheet('a'.repeat(length)),
  'a font size of digits': length => visible(`<p style="font-size:${'1'.repeat(length)}x">x</p>`),
  'a colour with blanks': length => visible(`<p style="color:rgba(0,${' '.repeat(length)}x)">x</p>`),
  'an image width with blanks': length => visible(`<img width="1${' '.repeat(length)}x">`),
  'HTML that opens only': length => inspectHtml('<a href="'.repeat(length / 9)),
  'HTML as plain text': length => plainTextOf('<a '.repeat(length / 3)),
  'a subject of open tags': length => stripTags('<a '.repeat(length / 3)),
  'a body without a space': length => encodeText('x'.repeat(length)),
  'a body to encode': length => encodeText('='.repeat(length)),
  'a field that ends in blanks': length => foldField('X-A', `a${' '.repeat(length)}`),
  'a field name with blanks': length => fieldName(`${' '.repeat(length)}x`),
  'a field with blanks': length => canonicalField(`X-A: ${' \t'.repeat(length / 2)}x`),
  'encoded words that do not end': length => decodeWords('=?a?q?'.repeat(length / 6)),
  'parameters that do not end': length => parameter(readMediaType('a/b; a="'.repeat(length / 8)), 'a'),
  'addresses in open brackets': length => readAddressList('<a ('.repeat(length / 4)),
  'a DKIM record of padding': length => recordMatchesKey(`v=DKIM1; p=${'='.repeat(length)}x`, 'AAAA'),
  'an SPF mechanism of digits': length => readRecord(`v=spf1 a:${'1'.repeat(length)}`),
  'an SPF record of macros': length =>
    readRecord(`v=spf1 exists:${'%{i}.'.repeat(100)} `.repeat(length / 500)),
  'an MTA-STS policy of colons': length => parseStsPolicy('version : '.repeat(length / 10)),
  'a reply of signs': length => alike('@'.repeat(length)),
  'a reply of brackets': length => alike('<'.repeat(length)),
  'tags of a contact in quotes': length => readTags('"a;""b;'.repeat(Math.min(length, 1_000) / 7)),
  'tags of a contact with blanks': length => readTags(`"a"${' '.repeat(length)}x`),
  'a feed of open tags': length =>
    readJsonFeed(
      JSON.stringify({
        version: 'https://jsonfeed.org/version/1.1',
        title: 'a',
        items: [{ id: '1', url: 'https://a.example/', content_html: '<a '.repeat(length / 3) }],
      }),
      'https://a.example/',
    ),
  'a duration of digits': length => parseDuration('1'.repeat(length)),
}

for (const [what, read] of Object.entries(READERS))
  t.test(`${what}: 1, 10 and 100 KB take a bounded number of steps per character`, async t =>
    assertBoundedSteps(t, read),
  )
