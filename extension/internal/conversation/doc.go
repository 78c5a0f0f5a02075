// Package conversation holds the values an agent run is made of: messages, tool calls, token usage, and the
// records of the action log. It stores nothing and knows no model and no database.
//
// Vocabulary, used everywhere in the tree:
//
//	conversation  ordered tasks that share an id
//	task          one call of agent_converse (or one delegation)
//	round         one model call plus every tool call its reply asks for
//	record        one logged step; the log of a conversation is the conversation
//	message       what the model sees: system, user, assistant (text and tool calls) or tool (one call's result)
//
// The log is the state: Rebuild makes the messages of a conversation from its records, and gives exactly the
// messages that the run which wrote them held in memory (a property test in package agent says so). The
// layout of the records' payloads is in payload.go and nowhere else.
package conversation
