// Package pgstore is the SQL of the extension's own tables, as the Go side uses it: it implements agent.Store and
// agent.Journal, and looks up tools and models for the other adapters. The functions of schema aidb that create and
// change what is stored are SQL themselves (sql/api) and are not repeated here.
//
// A round trip to the main thread costs as much as several statements, so each operation is one batch: everything a
// call needs to know of its agent comes with the agent, and what it did is written when it ends. Statements are
// constants: the main thread keeps their plans by their text.
//
// All of it runs with the rights of the extension's owner, to which row-level security does not apply. Who may see
// what is therefore not decided here: a conversation is returned with its owner, and the agent package compares.
package pgstore
