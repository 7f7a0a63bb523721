import SluiceCore
package import SluicePorts
import SluiceQuery

/// A session's permissions, with their predicates bound to the classes of a schema.
///
/// The session binds them once for each answer of the rules, and again after a change of the schema. Views, commits and ingest use the
/// bound form, so no rule is parsed per changeset or batch.
package struct SessionPermissions: Sendable {
    /// The rules' answer.
    package let plan: SessionPlan
    /// The schema of the predicates.
    package internal(set) var schema: AppSchema
    private let predicates: [String: Predicates]
    /// The rights to insert, by asymmetric class.
    private let rights: [String: IngestRights]

    /// The predicates of a class. An error takes the place of a text that is no query of the class.
    private struct Predicates {
        var read: Result<Predicate, SluiceError>
        var write: Result<Predicate, SluiceError>
    }

    package init(_ plan: SessionPlan, schema: AppSchema) {
        self.plan = plan
        self.schema = schema
        var predicates: [String: Predicates] = [:]
        for (name, rights) in plan.types {
            guard let type = schema.schema[name] else { continue }
            predicates[name] = Predicates(
                read: Result { () throws(SluiceError) in try Self.bind(rights.read, on: type, in: schema.schema) },
                write: Result { () throws(SluiceError) in try Query.parse(rights.write).predicate(on: type, in: schema.schema) })
        }
        self.predicates = predicates
        var rights: [String: IngestRights] = [:]
        for type in schema.schema.types where type.kind == .asymmetric {
            rights[type.name] = IngestRights(plan[type.name], type: type, write: predicates[type.name]?.write ?? .success(.false(type)))
        }
        self.rights = rights
    }

    package subscript(_ type: String) -> TypePlan { plan[type] }

    /// Returns the condition on the readable objects of a class.
    /// - Throws: The error of `bind(_:on:in:)`.
    func read(_ type: ObjectType) throws(SluiceError) -> Predicate { try predicates[type.name]?.read.get() ?? .false(type) }

    /// Returns the condition on the writable objects of a class.
    /// - Throws: A query error if the rules' text is no query of the class.
    func write(_ type: ObjectType) throws(SluiceError) -> Predicate { try predicates[type.name]?.write.get() ?? .false(type) }

    /// Returns the rights to insert into a class; nil if the server has no such asymmetric class.
    func ingest(_ type: String) -> IngestRights? { rights[type] }

    /// Binds a predicate that the rules returned.
    /// - Throws: The query error's code if the text is no query. Its value is the text, and its cause has the place, for operators only.
    static func bind(_ text: String, on type: ObjectType, in schema: Schema) throws(SluiceError) -> Predicate {
        do throws(SluiceError) {
            return try Query.parse(text).predicate(on: type, in: schema)
        } catch {
            throw SluiceError(
                error.code, "The server's rules for class \(type.name) are not a query.", value: text,
                fix: "Report it to the server's operator.", cause: .error(error))
        }
    }
}
