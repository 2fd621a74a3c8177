import { fields, text } from '../../../../sdk/src/integrations/host.ts'
import { RESPONSES } from '../../../../sdk/src/integrations/openai-methods.ts'
import type { Protocol } from './protocol.ts'

export const OPENAI_RESPONSES: Protocol = {
  ...RESPONSES,
  name: 'openai-responses',
  continues: ({ previous_response_id: id, conversation }) =>
    text(id) ?? text(conversation) ?? text(fields(conversation)['id']),
}
