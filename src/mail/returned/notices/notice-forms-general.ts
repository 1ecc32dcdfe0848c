/**
 * The rules for whatever no other knows: every way of naming a recipient.
 *
 * Applied by the reader of returned mail to what looks like a bounce, in this order. Data only.
 */
import {
  ALONE,
  ANGLED_FIRST,
  AT_END,
  AT_START,
  MAILTO,
  NAMED,
  TO_LINE,
  TRANSCRIPT,
  WITH_COLON,
  WITH_DATE,
  WITH_REMARK,
  WITH_SEMICOLON,
  type NoticeTemplate,
} from './notice-form.js'

export const GENERAL_TEMPLATE: NoticeTemplate = {
  name: 'general',
  when: {},
  recipient: [
    TRANSCRIPT,
    ANGLED_FIRST,
    ALONE,
    MAILTO,
    NAMED,
    WITH_DATE,
    WITH_COLON,
    WITH_SEMICOLON,
    WITH_REMARK,
    AT_END,
    AT_START,
  ],
}

/** Where nobody is said to have failed: whom the message that it talks of was for. */
export const FALLBACK_TEMPLATE: NoticeTemplate = { name: 'general', when: {}, recipient: [TO_LINE] }
