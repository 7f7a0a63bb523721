import SluiceCore

@testable import SluicePipeline

/// A schema of one class that never changes.
struct StandInAuthority: SchemaAuthority {
    static let type = ObjectType(
        name: "Order", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "size", type: .int)])

    func current() -> AppSchema { AppSchema(version: 1, schema: Schema([Self.type]), fields: QueryableFields(), isDevelopment: false) }
    func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
}

struct StandInFrames: FrameMaker {
    private final class Storage: Sendable {}

    func frame(_ message: [UInt8]) -> Frame { Frame(storage: Storage(), byteCount: message.count) }
}
