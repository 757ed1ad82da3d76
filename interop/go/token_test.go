package interop

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestABoundTokenIsRevokedWithItsObject(t *testing.T) {
	inEachFormat(t, func(t *testing.T, contentType string) {
		ctx, admin, in := t.Context(), typed(t, contentType), namespace(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bound"}}
		made, err := admin.CoreV1().Secrets(in).Create(ctx, secret, metav1.CreateOptions{})
		must(t, err)
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: made.Name, UID: made.UID},
		}}
		issued, err := admin.CoreV1().ServiceAccounts(in).CreateToken(ctx, "default", request, metav1.CreateOptions{})
		must(t, err)
		as := rest.AnonymousClientConfig(config(t, contentType))
		as.BearerToken = issued.Status.Token
		robot, err := kubernetes.NewForConfig(as)
		must(t, err)
		who := func() (*authenticationv1.SelfSubjectReview, error) {
			return robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		}
		review, err := who()
		must(t, err)
		expect(t, "the user", review.Status.UserInfo.Username, "system:serviceaccount:"+in+":default")
		must(t, admin.CoreV1().Secrets(in).Delete(ctx, made.Name, metav1.DeleteOptions{}))
		_, err = who()
		expect(t, "401 after the deletion", errors.IsUnauthorized(err), true)
		// Another object of the same name is not the one that the token is bound to.
		_, err = admin.CoreV1().Secrets(in).Create(ctx, secret, metav1.CreateOptions{})
		must(t, err)
		_, err = who()
		expect(t, "401 with another object", errors.IsUnauthorized(err), true)
	})
}
