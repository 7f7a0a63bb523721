import SluiceCore
import SluiceValues

/// Identifies users by a function of the app, the provider `custom-function`.
///
/// The function receives the payload of the login. It returns the user's id at the app's own service, or fails. If a plugin runs it, the
/// hook `authenticate` takes its place.
package struct FunctionLogin: Sendable {
    package static let provider = "custom-function"

    private let function: String
    private let functions: any AppFunctions

    package init(_ function: String, of functions: any AppFunctions) {
        self.function = function
        self.functions = functions
    }

    /// Returns the identity for the body of a login. Its payload is the body without `options`, which every login has.
    ///
    /// - Throws: `loginTokenRejected` with the text of the function's error; `functionFailed` for a result that is no id;
    ///   `functionUnavailable`, `functionTimeout`.
    func identity(of body: JSON) async throws(SluiceError) -> ProvenIdentity {
        let payload = JSON.object((body.members ?? []).filter { $0.key != "options" })
        let result: JSON
        do throws(SluiceError) {
            var call = FunctionCall(function, arguments: [payload], caller: .system)
            call.isLogin = true
            result = try await functions.call(call)
        } catch {
            guard error.code == .functionFailed else { throw error }
            throw SluiceError(
                .loginTokenRejected, error.message, value: "the function '\(function)' failed", fix: "Log in with another payload.",
                cause: .error(error))
        }
        guard let id = result.string ?? result["id"]?.string, (1...TokenPolicy.subjectBytes).contains(id.utf8.count) else {
            throw SluiceError(
                .functionFailed, "The function '\(function)' returned no id.",
                fix: #"Let it return a text of 1 to \#(TokenPolicy.subjectBytes) bytes, or {"id": …, "name": …}."#)
        }
        let name = result["name"]?.string.map { JSON.object([.init("name", .string($0))]) }
        return ProvenIdentity(provider: Self.provider, id: id, data: name ?? .object([]))
    }
}
