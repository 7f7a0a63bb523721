package import SluiceRealm

extension RealmConnection {
    /// Serves the connection until its end. Cancelling the caller's task shuts it down.
    package func run() async {
        begin()
        await withTaskCancellationHandler {
            await ended()
        } onCancel: {
            end(.shutDown)
        }
    }
}
