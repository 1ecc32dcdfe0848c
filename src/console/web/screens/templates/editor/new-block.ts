/** What a block holds when it is added: something to be seen and overwritten. */
import { tr } from '../../../i18n/i18n'
import type { Properties } from '../document/document'
import type { BlockType } from '../document/fields'

export function newContent(type: BlockType): Properties {
  const texts = tr().templates.samples
  switch (type) {
    case 'header':
      return { text: texts.header, level: 1, alignment: 'left' }
    case 'text':
      return { html: `<p>${texts.text}</p>` }
    case 'button':
      return { text: texts.button, url: 'https://', alignment: 'center' }
    case 'image':
      return { src: '', alt: '', width: 'auto' }
    case 'divider':
      return {}
    case 'spacer':
      return { height: 24 }
    case 'html':
      return { html: '' }
    case 'columns':
      return { columns: [{ blocks: [] }, { blocks: [] }] }
    case 'social':
      return { links: [{ platform: 'Mastodon', url: 'https://' }] }
    case 'dynamic':
      return { source: 'items', blocks: [] }
    case 'conditional':
      return { field: 'first_name', operator: 'is_set', blocks: [], elseBlocks: [] }
    case 'hero':
      return { title: texts.header, text: texts.text }
    case 'profile':
      return { name: texts.name, role: texts.role }
    case 'dropshadow':
      return { blocks: [] }
  }
}
