/// The functions of an app by name: `user.functions.sum(1, 2)`. A gateway has none, so that every call ends with
/// `AppError.notCallable`, which says what to do instead.
@dynamicMemberLookup
public struct Functions: Sendable {
    /// A function that is called back.
    public typealias ResultFunction = @Sendable ([AnyBSON], @escaping @Sendable (Result<AnyBSON, any Error>) -> Void) -> Void
    /// The same, with the result and the error apart.
    public typealias Function = @Sendable ([AnyBSON], @escaping @Sendable (AnyBSON?, (any Error)?) -> Void) -> Void

    public subscript(dynamicMember name: String) -> FunctionCallable { FunctionCallable(name: name) }

    public subscript(dynamicMember name: String) -> ResultFunction {
        { arguments, completion in call(completion) { try await FunctionCallable(name: name)(arguments) } }
    }

    public subscript(dynamicMember name: String) -> Function {
        { arguments, completion in
            call({ (result: Result<AnyBSON, any Error>) in
                switch result {
                case .success(let value): completion(value, nil)
                case .failure(let error): completion(nil, error)
                }
            }) { try await FunctionCallable(name: name)(arguments) }
        }
    }
}

/// A function of an app, for `await`.
public struct FunctionCallable: Sendable {
    let name: String

    public func callAsFunction(_ arguments: [AnyBSON]) async throws -> AnyBSON {
        throw AppError.notOffered("The function '\(name)'", "Call a service of the app's own, or write an object that it reacts to.")
    }

    public func callAsFunction(_ arguments: AnyBSON...) async throws -> AnyBSON { try await self(arguments) }
}

extension User {
    /// Functions of the app, of which a gateway has none.
    public var functions: Functions { Functions() }
}
