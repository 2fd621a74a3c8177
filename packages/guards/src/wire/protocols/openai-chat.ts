import { CHAT } from '../../../../sdk/src/integrations/openai-methods.ts'
import type { Protocol } from './protocol.ts'

export const OPENAI_CHAT: Protocol = { ...CHAT, name: 'openai-chat' }
