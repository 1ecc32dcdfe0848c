/** Templates to start with, in the operator's language. Every image they need is theirs to add. */
import type { Language } from '../../../i18n/i18n'
import { wordsIn, type Words } from './words'

export const STARTERS = ['newsletter', 'welcome', 'announcement', 'receipt', 'invitation'] as const
export type StarterName = (typeof STARTERS)[number]

type Structure = Readonly<Record<string, unknown>>

export const blank: Structure = { blocks: [], settings: {} }

export function startersIn(language: Language): Readonly<Record<StarterName, Structure>> {
  const words = wordsIn(language)
  return {
    newsletter: newsletter(words),
    welcome: welcome(words),
    announcement: announcement(words),
    receipt: receipt(words),
    invitation: invitation(words),
  }
}

type Content = Readonly<Record<string, unknown>>

/** Ids are by number: they are unique in a document, and the same each time. */
function numbered(): (type: string, content: Content) => object {
  let last = 0
  return (type, content) => ({ id: `b${++last}`, type, content })
}

const SYSTEM = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
const GEORGIA = "Georgia, 'Times New Roman', serif"

function newsletter(words: Words): Structure {
  const block = numbered()
  const story = (title: string, text: string) => [
    block('header', { text: title, level: 3 }),
    block('text', { html: `<p>${text}</p>` }),
    block('button', {
      text: words.more,
      url: 'https://',
      alignment: 'left',
      backgroundColor: '#0f766e',
      borderRadius: 6,
    }),
  ]
  return {
    settings: {
      fontFamily: GEORGIA,
      backgroundColor: '#eef2ee',
      contentBackgroundColor: '#ffffff',
      defaultTextColor: '#1f2a27',
      contentWidth: 620,
    },
    blocks: [
      block('hero', {
        title: words.newsletterTitle,
        text: words.newsletterText,
        backgroundColor: '#134e4a',
        textColor: '#f0fdfa',
        alignment: 'left',
      }),
      block('spacer', { height: 16 }),
      block('text', { html: `<p>${words.hello}</p><p>${words.newsletterIntro}</p>` }),
      block('divider', { color: '#d5e0da' }),
      block('columns', {
        columns: [
          { blocks: story(words.storyOne, words.storyText) },
          { blocks: story(words.storyTwo, words.storyText) },
        ],
      }),
      block('divider', { color: '#d5e0da' }),
      block('header', { text: words.alsoNew, level: 2 }),
      block('text', {
        html: `<ul><li>${words.pointOne}</li><li>${words.pointTwo}</li><li>${words.pointThree}</li></ul>`,
      }),
      block('social', {
        links: [
          { platform: 'Mastodon', url: 'https://' },
          { platform: 'YouTube', url: 'https://' },
        ],
        color: '#0f766e',
      }),
      block('spacer', { height: 16 }),
    ],
  }
}

function welcome(words: Words): Structure {
  const block = numbered()
  const step = (number: string, title: string, text: string) => ({
    blocks: [
      block('header', { text: number, level: 1, alignment: 'center', color: '#6d28d9' }),
      block('text', { html: `<strong>${title}</strong><br>${text}`, alignment: 'center' }),
    ],
  })
  return {
    settings: { fontFamily: SYSTEM, backgroundColor: '#f3f0fa', defaultTextColor: '#2b2440' },
    blocks: [
      block('spacer', { height: 24 }),
      block('header', { text: words.welcomeTitle, level: 1, alignment: 'center' }),
      block('text', { html: `<p>${words.welcomeText}</p>`, alignment: 'center' }),
      block('button', { text: words.begin, url: 'https://', backgroundColor: '#6d28d9', borderRadius: 24 }),
      block('spacer', { height: 24 }),
      block('columns', {
        columns: [
          step('1', words.stepOne, words.stepOneText),
          step('2', words.stepTwo, words.stepTwoText),
          step('3', words.stepThree, words.stepThreeText),
        ],
      }),
      block('divider', { color: '#e4ddf5' }),
      block('profile', { name: words.personName, role: words.personRole, text: words.personText }),
      block('spacer', { height: 16 }),
    ],
  }
}

function announcement(words: Words): Structure {
  const block = numbered()
  return {
    settings: {
      fontFamily: SYSTEM,
      backgroundColor: '#0b1220',
      contentBackgroundColor: '#ffffff',
      defaultTextColor: '#172033',
    },
    blocks: [
      block('hero', {
        title: words.announcementTitle,
        text: words.announcementText,
        buttonText: words.see,
        buttonUrl: 'https://',
        backgroundColor: '#1d4ed8',
        buttonColor: '#0b1220',
      }),
      block('spacer', { height: 16 }),
      block('text', { html: `<p>${words.hello}</p><p>${words.announcementBody}</p>` }),
      block('dropshadow', {
        backgroundColor: '#f5f8ff',
        blocks: [
          block('header', { text: words.whatsNew, level: 3 }),
          block('text', {
            html: `<ul><li>${words.pointOne}</li><li>${words.pointTwo}</li><li>${words.pointThree}</li></ul>`,
          }),
        ],
      }),
      block('button', { text: words.see, url: 'https://', backgroundColor: '#1d4ed8', fullWidth: true }),
      block('spacer', { height: 24 }),
    ],
  }
}

function receipt(words: Words): Structure {
  const block = numbered()
  const row = (left: string, right: string) => ({
    columns: [
      { width: 70, blocks: [block('text', { html: left })] },
      { width: 30, blocks: [block('text', { html: right, alignment: 'right' })] },
    ],
  })
  return {
    settings: { fontFamily: 'Arial, Helvetica, sans-serif', contentWidth: 560, backgroundColor: '#f4f4f5' },
    blocks: [
      block('spacer', { height: 16 }),
      block('header', { text: words.receiptTitle, level: 2 }),
      block('text', { html: `<p>${words.hello}</p><p>${words.receiptText}</p>` }),
      block('divider', {}),
      block('dynamic', {
        source: 'items',
        blocks: [block('columns', row('{{this.quantity}} × {{this.name}}', '{{this.price}}'))],
      }),
      block('divider', {}),
      block('columns', row(`<strong>${words.total}</strong>`, '<strong>{{total}}</strong>')),
      block('button', { text: words.track, url: '{{order_url}}', backgroundColor: '#18181b' }),
      block('conditional', {
        field: 'pickup',
        operator: 'is_set',
        blocks: [block('text', { html: `<p>${words.pickUp}</p>`, alignment: 'center' })],
        elseBlocks: [block('text', { html: `<p>${words.delivered}</p>`, alignment: 'center' })],
      }),
      block('spacer', { height: 16 }),
    ],
  }
}

function invitation(words: Words): Structure {
  const block = numbered()
  return {
    settings: {
      fontFamily: GEORGIA,
      backgroundColor: '#fbf3ea',
      contentBackgroundColor: '#fffdf9',
      defaultTextColor: '#42301f',
    },
    blocks: [
      block('spacer', { height: 32 }),
      block('text', { html: words.invitationKicker, alignment: 'center', color: '#9a4a12' }),
      block('header', { text: words.invitationTitle, level: 1, alignment: 'center' }),
      block('divider', { color: '#9a4a12', width: 20, thickness: 2 }),
      block('text', { html: `<p>${words.hello}</p><p>${words.invitationText}</p>`, alignment: 'center' }),
      block('dropshadow', {
        backgroundColor: '#fbf3ea',
        blur: 6,
        blocks: [
          block('columns', {
            columns: [
              {
                blocks: [
                  block('text', {
                    html: `<strong>${words.when}</strong><br>${words.whenText}`,
                    alignment: 'center',
                  }),
                ],
              },
              {
                blocks: [
                  block('text', {
                    html: `<strong>${words.where}</strong><br>${words.whereText}`,
                    alignment: 'center',
                  }),
                ],
              },
            ],
          }),
        ],
      }),
      block('button', { text: words.accept, url: 'https://', backgroundColor: '#9a4a12', borderRadius: 2 }),
      block('spacer', { height: 32 }),
    ],
  }
}
