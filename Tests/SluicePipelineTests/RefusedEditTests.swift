import SluiceCore
import SluicePorts
import Testing

@testable import SluicePipeline

/// A compensating write has the values that the client sent. An edit of a list has none: its result is the list of the server.
@Suite struct `A refused edit of a list` {
    private static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
            Property(id: 3, name: "tags", type: .string, collection: .list),
        ])
    private static let secret = ["secret one", "secret two"]

    /// - Returns: The rejections of an edit of an order with two tags.
    private static func commit(_ edit: Edit, store: String, _ plan: TypePlan) async throws -> [WriteRejection] {
        let row = Row([.string("k"), .string(store), .list(secret.map { .string($0) })])
        let change = ObjectChange(
            object: ObjectKey(type: "Order", key: .string("k")), kind: .set, values: ["store": .string("north")], edits: [edit])
        return try await OneCommit(type: type, plan: plan, view: "store == 'north'", stored: row)(change).rejected
    }

    private static let open = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "clerk")
    private static let blind = TypePlan(
        read: "TRUEPREDICATE", write: "TRUEPREDICATE", fields: FieldRights(readable: ["store"], writable: ["store"]), role: "clerk")
    private static let readOnly = TypePlan(read: "TRUEPREDICATE", write: "FALSEPREDICATE", role: "clerk")
    private static let fitting = Edit("tags", .insert(.string("mine"), after: nil, tag: 1))
    private static let beyond = Edit("tags", [.element(.seen(7))], .set(.string("mine")))
    private static let guessed = Edit("tags", .insert(.string("mine"), after: nil, tag: 1), priorSize: 5)

    @Test(arguments: [fitting, beyond, guessed]) func `tells nothing of an object outside of the view`(edit: Edit) async throws {
        let rejected = try await Self.commit(edit, store: "south", Self.open)
        #expect(rejected.map(\.cause) == [.outsideView] && rejected.map(\.values) == [["store": .string("north")]])
        #expect(!"\(rejected)".contains("secret"), "\(rejected)")
    }

    @Test(arguments: [fitting, beyond, guessed]) func `tells nothing of a field that its writer may not read`(edit: Edit) async throws {
        let rejected = try await Self.commit(edit, store: "north", Self.blind)
        #expect(rejected.map(\.cause) == [.fields] && rejected.map(\.values) == [["store": .string("north")]])
        #expect(!"\(rejected)".contains("secret"), "\(rejected)")
    }

    @Test func `has the list that it would have made, if its writer sees the list`() async throws {
        let rejected = try await Self.commit(Self.fitting, store: "north", Self.readOnly)
        #expect(rejected.map(\.cause) == [.writeRule])
        #expect(rejected.first?.values["tags"] == .list((["mine"] + Self.secret).map { .string($0) }))
    }

    @Test(arguments: [beyond, guessed]) func `that contradicts the list ends the session of who may write it`(edit: Edit) async throws {
        await #expect { try await Self.commit(edit, store: "north", Self.open) } throws: { ($0 as? SluiceError)?.code == .badChangeset }
    }
}
