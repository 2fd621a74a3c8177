/** Describes a held call for people: a sentence, the user's words, and the source of each value. */
import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { nullableText } from '../web/fields.ts'

export const SentencePart = Type.Object(
  {
    kind: Type.Enum(['words', 'value', 'amount'], {
      description:
        'words: of the tool or of a template; value: of the input; amount: what a decision is about, such as `917 EUR`',
    }),
    text: Type.String({ description: 'As recorded: escape it before you show it' }),
  },
  { $id: 'SentencePart' },
)
export type SentencePart = Static<typeof SentencePart>

export const CallSentence = Type.Array(SentencePart, {
  description:
    'What the call would do, in parts that follow each other: `Refund 917 EUR · A-74932 · road bike`. From the template of the policy, or else the words of the tool, and the fields of the recorded input that the condition or their names show to matter. Only the words of the tool where no input is known',
})

/** Place where a value of the input occurred before the request. */
const ValueOrigin = Type.Object(
  {
    kind: Type.Enum(['result', 'user'], { description: 'result: of a tool; user: the user said it' }),
    label: Type.String({ description: 'The tool, or the label of the step' }),
    path: nullableText('Where in the result it is; null: in a text, or the user said it'),
    isPart: Type.Boolean({ description: 'Whether it is a word within a longer text' }),
    step: Type.Integer({ minimum: 1, description: 'Number of the step in the timeline of the run' }),
    eventId: Type.String(),
  },
  { $id: 'ValueOrigin' },
)
export type ValueOrigin = Static<typeof ValueOrigin>

const InputField = Type.Object(
  {
    path: Type.String({ description: 'Such as `payment.amount` or `items[0].id`; empty: the whole input' }),
    json: Type.String({ description: `JSON as recorded, cut after ${LIMITS.inputFieldChars} characters` }),
    isCut: Type.Boolean(),
    check: Type.Enum(['matches', 'sealed', 'cannot_be_checked', 'does_not_match'], {
      description:
        'Whether it is what the agent asked for, by the hash of the whole input; sealed: masked here, and covered by the hash',
    }),
    origins: Type.Unsafe<ValueOrigin[] | null>({
      anyOf: [Type.Array(ValueOrigin), { type: 'null' }],
      description: 'The newest first, at most two; empty: it was nowhere; null: it is masked, or too short to tell',
    }),
  },
  { $id: 'InputField' },
)
export type InputField = Static<typeof InputField>

const UserText = Type.Object(
  {
    text: Type.String({ description: `At most ${LIMITS.userTextChars} characters` }),
    isCut: Type.Boolean(),
    step: Type.Integer({ minimum: 1 }),
    eventId: Type.String(),
  },
  { $id: 'UserText', description: 'A message of the user' },
)
export type UserText = Static<typeof UserText>

export const CallGrounds = Type.Object(
  {
    said: Type.Array(UserText, {
      description: 'The first message of the user that was read, and the last two before the request',
    }),
    fields: Type.Array(InputField, { description: `At most ${LIMITS.inputFields}` }),
    moreFields: Type.Boolean(),
    stepsRead: Type.Integer({ minimum: 0, description: 'Steps before the request that were searched' }),
    isWhole: Type.Boolean({ description: 'Whether that is all that the run had recorded by then, uncut and unmasked' }),
  },
  { $id: 'CallGrounds', description: 'What a held call rests on: null if no input is recorded' },
)
export type CallGrounds = Static<typeof CallGrounds>
